import { useNavigate } from '@tanstack/react-router';
import { useTimeZone } from '../url/time-zone';
import { PRESETS, timeRangeOf, type Preset } from '../url/time-range';
import { sharedState, type UrlState, useUrlState } from '../url/url-state';
import type { Found } from './use-find';

/** Leads to the page of what was found. */
export function useGoTo(): (found: Found) => void {
  const [url] = useUrlState();
  const zone = useTimeZone();
  const navigate = useNavigate();
  return (found) => {
    const shared = sharedState(url);
    const { id, name } = found;
    switch (found.kind) {
      case 'request':
        return void navigate({ to: '/requests', search: { ...shared, id: id ?? undefined } });
      case 'team':
        return void navigate({ to: '/teams', search: { ...shared, open: id ?? undefined } });
      case 'key':
        return void navigate({ to: '/keys', search: { ...shared, key: id ?? undefined } });
      case 'model':
        return void navigate({ to: '/usage', search: { ...shared, model: name, by: 'key' } });
      case 'end_user':
        return void navigate({
          to: '/requests',
          search: { ...shared, ...rangeWith(found, zone), end_user: name },
        });
      case 'session':
        return void navigate({
          to: '/requests',
          search: { ...shared, ...rangeWith(found, zone), session: name },
        });
    }
  };
}

const RANGES: readonly Preset[] = ['24h', '7d', '30d', '90d'];

/** The shortest range of the page that has the call that was found. */
function rangeWith({ at }: Found, zone: string): Pick<UrlState, 'range' | 'from' | 'to'> {
  const now = new Date();
  const start = at === null ? now : new Date(at);
  const range = RANGES.find(
    (preset) => preset in PRESETS && timeRangeOf({ range: preset }, preset, zone, now).from <= start,
  );
  if (range !== undefined) return { range, from: undefined, to: undefined };
  return { range: undefined, from: start.toISOString(), to: now.toISOString() };
}
