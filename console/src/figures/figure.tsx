import { Text, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import { LOCAL_ZONE, useTimeZone, zoneLabel } from '../url/time-zone';
import { exactUsd, formatUsd, nanoOf } from './money';
import { compact, count } from './numbers';
import { exactTime, relativeTime, shortTime } from './times';

/** An amount of money. The exact one is shown on hover. Null: unknown, which is not zero. */
export function Money({ usd }: { usd: string | bigint | null | undefined }) {
  if (usd === null || usd === undefined)
    return (
      <Unknown why="No call here has a cost: its model has no price, or the provider reported no tokens." />
    );
  const nano = typeof usd === 'bigint' ? usd : nanoOf(usd);
  const exact = exactUsd(nano);
  return (
    <Hover label={exact} off={exact === formatUsd(nano)}>
      {formatUsd(nano)}
    </Hover>
  );
}

/** A large count, shortened; exact on hover. */
export function Compact({ value }: { value: number }) {
  return (
    <Hover label={count(value)} off={compact(value) === count(value)}>
      {compact(value)}
    </Hover>
  );
}

/** What is not known, with the reason on hover. */
export function Unknown({ why }: { why: string }) {
  return (
    <Tooltip label={why} multiline maw={280}>
      <Text span inherit c="dimmed" tabIndex={0} aria-label={`unknown: ${why}`} role="note">
        –
      </Text>
    </Tooltip>
  );
}

function Hover({ label, off, children }: { label: string; off?: boolean; children: string }) {
  return (
    <span data-exact={label} title={off === true ? undefined : label}>
      {children}
    </span>
  );
}

/** "3 min. ago", with the exact time on hover. Follows the clock. */
export function RelativeTime({ at, empty = '–' }: { at: string | null | undefined; empty?: string }) {
  const zone = useTimeZone();
  const now = useNow(at !== null && at !== undefined);
  if (at === null || at === undefined) return <>{empty}</>;
  const instant = new Date(at);
  return (
    <time dateTime={at} title={`${exactTime(instant, zone, { milliseconds: true })} ${zoneLabel(zone)}`}>
      {relativeTime(instant, now)}
    </time>
  );
}

/** "Nov 22, 15:04", with the exact time on hover. */
export function ExactTime({ at, seconds = false }: { at: string; seconds?: boolean }) {
  const zone = useTimeZone();
  const instant = new Date(at);
  const exact = exactTime(instant, zone, { milliseconds: true });
  const other = zone === 'UTC' ? LOCAL_ZONE : 'UTC';
  return (
    <time
      dateTime={at}
      title={`${exact} ${zoneLabel(zone)}\n${exactTime(instant, other)} ${zoneLabel(other)}`}
    >
      {seconds ? exactTime(instant, zone) : shortTime(instant, zone)}
    </time>
  );
}

/** The present time, renewed every 5 seconds while it is needed. */
export function useNow(active = true): Date {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => setNow(new Date()), 5_000);
    return () => clearInterval(timer);
  }, [active]);
  return now;
}
