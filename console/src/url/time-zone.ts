import { useUrlState } from './url-state';

/** The zone of the reader's computer. */
export const LOCAL_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC';

/** The zone in which this page shows times: the reader's own, or UTC if the URL says so. */
export function useTimeZone(): string {
  const [{ tz }] = useUrlState();
  return tz === 'UTC' ? 'UTC' : LOCAL_ZONE;
}

/** The zone with its present distance from UTC: "Europe/Berlin (UTC+2)". */
export function zoneLabel(zone: string): string {
  if (zone === 'UTC' || zone === 'Etc/UTC') return 'UTC';
  const offset = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'shortOffset' })
    .formatToParts(new Date())
    .find(({ type }) => type === 'timeZoneName')?.value;
  return `${zone.replaceAll('_', ' ')} (${(offset ?? 'GMT').replace('GMT', 'UTC')})`;
}
