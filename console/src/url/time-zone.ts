import { useSession } from '../app/session';
import { useUrlState } from './url-state';

/** The zone of the reader's computer. */
export const LOCAL_ZONE = named(Intl.DateTimeFormat().resolvedOptions().timeZone);

/** The zone in which this page shows days and times: the one of the URL, else that of the gateway's reports. */
export function useTimeZone(): string {
  const [{ tz }] = useUrlState();
  const reports = useReportZone();
  return tz !== undefined && isZone(tz) ? named(tz) : reports;
}

/** The zone of the gateway's reports: `REPORT_TIMEZONE`. */
export function useReportZone(): string {
  const zone = useSession().data?.time_zone;
  return zone !== undefined && isZone(zone) ? named(zone) : 'UTC';
}

/** The zones that a page offers, the one of the reports first, with that of the URL. */
export function useOfferedZones(): { zone: string; label: string }[] {
  const reports = useReportZone();
  const shown = useTimeZone();
  return [...new Set([reports, LOCAL_ZONE, 'UTC', shown])].map((zone) => {
    const whose = zone === reports ? ', of reports' : zone === LOCAL_ZONE ? ', yours' : '';
    return { zone, label: zoneLabel(zone) + whose };
  });
}

/** The zone with its present distance from UTC: "Europe/Berlin (UTC+2)". */
export function zoneLabel(zone: string): string {
  if (zone === 'UTC') return 'UTC';
  const offset = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'shortOffset' })
    .formatToParts(new Date())
    .find(({ type }) => type === 'timeZoneName')?.value;
  return `${zone.replaceAll('_', ' ')} (${(offset ?? 'GMT').replace('GMT', 'UTC')})`;
}

function isZone(text: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: text });
    // The API takes no distances from UTC, such as +05:30.
    return /^[A-Za-z]/.test(text);
  } catch {
    return false;
  }
}

function named(zone: string): string {
  return zone === '' || zone === 'Etc/UTC' ? 'UTC' : zone;
}
