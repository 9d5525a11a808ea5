import type { ClientBase } from 'pg';
import { DAY_MS, type Day, dayOf, daysFrom } from './partition-day.js';
import {
  closeRanges,
  covers,
  daysInDefault,
  isDefaultEmpty,
  listPartitions,
  type Partition,
} from './partition-list.js';
import { dropPartition, makePartitions, PlanOutdated } from './partition-moves.js';

const DAYS_AHEAD = 7;
/** New days may turn up in the default partition while others are moved; more often than this they wait a round. */
const MOST_PLANS = 3;

/** What a round is told. */
export interface RoundOrders {
  /** This process's clock, Unix milliseconds: the one its rows are dated by. */
  now: number;
  /** Days a row is kept at least. */
  retentionDays: number;
  /** Asked between the steps. */
  stopped: () => boolean;
}

/** What a round did. */
export interface RoundReport {
  /** New partitions. */
  made: Day[];
  /** Rows that left the default partition for one of their day. */
  moved: number;
  /** Partitions dropped whole. */
  dropped: string[];
  /** True when partitions that are due were left, because the clock could not be trusted yet. */
  kept: boolean;
}

/** The days that must have a partition, by this process's clock and by the server's: other replicas may follow either. */
async function daysAhead(client: ClientBase, now: number): Promise<{ ahead: Day[]; clocks: number[] }> {
  const { rows } = await client.query<{ now: number }>(
    'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now',
  );
  const clocks = [now, rows[0]!.now];
  return { ahead: [...new Set(clocks.flatMap((clock) => daysFrom(clock, DAYS_AHEAD)))], clocks };
}

/** Makes the days ahead when that is quick: none is missing, or the default partition has nothing to be moved. */
export async function makeAhead(client: ClientBase, now: number): Promise<void> {
  const partitions = await listPartitions(client);
  const missing = (await daysAhead(client, now)).ahead.filter((day) => !covers(partitions, day));
  if (missing.length === 0 || !(await isDefaultEmpty(client))) return;
  try {
    await makePartitions(
      client,
      missing,
      () => false,
      () => false,
    );
  } catch (error) {
    // A row came into the default partition that moment: for the round behind.
    if (!(error instanceof PlanOutdated)) throw error;
  }
}

/**
 * One round of keeping: the days ahead have partitions, the default partition is emptied, expired days are dropped.
 * To be run by one process at a time; killed anywhere it leaves nothing that the next round does not clean up.
 */
export async function keepPartitions(client: ClientBase, orders: RoundOrders): Promise<RoundReport> {
  const report: RoundReport = { made: [], moved: 0, dropped: [], kept: false };
  const { ahead, clocks } = await daysAhead(client, orders.now);
  const before = await listPartitions(client);
  // Expired by both clocks, and only once the log has a yesterday: after a leap of the clock (or a long pause) a day
  // passes in which people can see it, before what then counts as old is gone for good.
  const isTrusted = clocks.every((clock) => covers(before, dayOf(clock) - DAY_MS));
  const oldestKept = dayOf(Math.min(...clocks) - orders.retentionDays * DAY_MS);
  const isExpired = (day: Day) => isTrusted && day < oldestKept;

  for (let plan = 1; ; plan++) {
    const partitions = await listPartitions(client);
    // A replay from a journal may bring back calls of a day that was dropped. They land in the default partition, are
    // seen for at most a round and go with its TRUNCATE; making their day again would keep a stump of it for nothing.
    const strays = (await daysInDefault(client)).filter((day) => !isExpired(day));
    const missing = [...new Set([...ahead, ...strays])].filter((day) => !covers(partitions, day));
    if (missing.length === 0 && (await isDefaultEmpty(client))) break;
    try {
      report.moved += await makePartitions(client, missing, isExpired, orders.stopped);
      report.made.push(...missing);
      break;
    } catch (error) {
      if (!(error instanceof PlanOutdated) || plan === MOST_PLANS || orders.stopped()) throw error;
    }
  }

  const isFresh = ({ from, to }: Partition) => report.made.includes(from) || to > orders.now - 3 * DAY_MS;
  for (const partition of await listPartitions(client)) {
    if (partition.to <= orders.now && isFresh(partition)) await closeRanges(client, partition.table);
  }

  for (const { table, to } of before) {
    if (to > oldestKept || orders.stopped()) continue;
    if (!isTrusted) report.kept = true;
    else {
      await dropPartition(client, table);
      report.dropped.push(table);
    }
  }
  return report;
}
