import { Group, Text } from '@mantine/core';
import { duration } from '../../figures/numbers';
import classes from './call-timeline.module.css';
import type { Call } from './call';

/** How long the call waited for the first byte of the response, and how long the response took. */
export function CallTimeline({
  call: { ttfb_ms, duration_ms, error_code },
}: {
  call: Pick<Call, 'ttfb_ms' | 'duration_ms' | 'error_code'>;
}) {
  if (duration_ms === null) {
    return (
      <Text size="sm" c="dimmed">
        The gateway stopped during this call, so its end is not known.
      </Text>
    );
  }
  const wait = Math.min(ttfb_ms ?? duration_ms, duration_ms);
  const rest = duration_ms - wait;
  const share = duration_ms === 0 ? 0 : wait / duration_ms;
  return (
    <div>
      <div className={classes.track} aria-hidden="true">
        <span className={classes.wait} style={{ width: `${share * 100}%` }} />
        <span className={classes.response} style={{ width: `${(1 - share) * 100}%` }} />
      </div>
      <Group justify="space-between" mt={6} gap="xs">
        <Text size="sm">
          <span className={classes.waitKey} aria-hidden="true" />{' '}
          {ttfb_ms === null
            ? error_code === 'upstream_unreachable'
              ? 'No connection to the provider'
              : 'No response'
            : `First byte after ${duration(ttfb_ms)}`}
        </Text>
        {ttfb_ms !== null && (
          <Text size="sm">
            <span className={classes.responseKey} aria-hidden="true" /> Response {duration(rest)}
          </Text>
        )}
        <Text size="sm" fw={600}>
          Total {duration(duration_ms)}
        </Text>
      </Group>
    </div>
  );
}
