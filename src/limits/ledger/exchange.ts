import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { RenewedConnection } from '../../database/renewed-connection.js';
import { describeError } from '../../errors/describe-error.js';
import { FailingSpell } from '../../platform/failing-spell.js';
import { patience } from '../../platform/patience.js';
import { Durations } from '../../observability/durations.js';
import type { Regressions } from '../../regressions/regressions.service.js';
import { OutageLog } from '../../request-log/writer/outage-log.js';
import { type HoldEntry, HoldMeter, type HoldResult } from './hold-meter.js';
import type { Meter } from './meter.js';
import type { Periods, Window } from './periods.js';
import type { PostgresClock } from './postgres-clock.js';
import { type RateEntry, RateMeter, type RateResult } from './rate-meter.js';

/** A call waits at most this long for a Postgres that does not respond. */
const TIMEOUT = patience('an exchange of limits', 2_000);
/** How long a process that stops tries meters again that other transactions have locked. */
const STOPPING = patience('locked meters at a stop', 2_000);
/** After an error the next attempt waits this long. */
const RETRY_MS = 1_000;
/** Meters in one exchange: Postgres takes about 0.2 ms for each on a busy machine. */
const MAX_METERS = 1_000;
/** The others take a process for stopped after 15 s without an exchange. */
const HEARTBEAT_MS = 2_000;
/** A process that has not come back after this, although Postgres was there, may never do. */
const GONE_MS = 15_000;

/** Of the histogram, in seconds. */
const DURATION_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];

/** The exchange of one kind of limits. */
interface Channel {
  /** Of the function in Postgres, and part of the name of the statement. */
  readonly name: string;
  /** Between the starts of two exchanges; for each process there is, at least the second. */
  readonly spacingMs: number;
  readonly spacingPerProcessMs: number;
}

/** Limits of keys and teams: at most ten exchanges a second. */
const OWN: Channel = {
  name: 'limit_exchange',
  spacingMs: 100,
  spacingPerProcessMs: 0,
};
/**
 * Limits that all replicas share: a meter is locked until the exchange is durable, by one replica after the other. With
 * commits of 5 ms that is about 100 exchanges a second, of which all processes together ask for half at most.
 */
const HOT: Channel = {
  name: 'limit_exchange_hot',
  spacingMs: 500,
  spacingPerProcessMs: 20,
};

/** Nothing is exchanged on another server than $7: what it has lost is not put back yet. */
const exchangeOf = (name: string): pg.QueryConfig => ({
  name,
  text: `
    SELECT CASE WHEN same THEN ${name}($1, $2, make_interval(secs => $3), $4, $5, $6) END AS result, same
    FROM (SELECT $7::timestamptz IS NULL OR pg_postmaster_start_time() = $7 AS same) server`,
});

interface Result {
  processes: number;
  windows: Window[] | null;
  holds: HoldResult[] | null;
  rates: RateResult[] | null;
  now: number;
}

interface Sent {
  holds: (HoldEntry & { n: number })[];
  rates: (RateEntry & { n: number })[];
  meters: Meter[];
}

export interface ExchangeOptions {
  databaseUrl: string;
  /** UUID of this process run. */
  process: string;
  /** Holds of a process that was not seen for this long are void. */
  voidMs: number;
  /** For limits that many replicas share. */
  isHot?: boolean;
  /** Says on which server limits may be exchanged; absent: on any. */
  regressions?: Pick<Regressions, 'admitted' | 'doubt' | 'server'>;
}

/** Who must know how exchanges end. */
export interface ExchangeListener {
  /** Called after each exchange. */
  ended(succeeded: boolean): void;
  /** Called after the first exchange that succeeded after others had failed. */
  recovered(): void;
}

/**
 * The exchange of this process with the ledger in Postgres: one message at a time, for all meters that are due, up to a
 * limit. A message states what this process holds and needs, so that a repeated one changes nothing; one that Postgres
 * executes after a newer one is ignored there.
 */
export class LedgerExchange {
  readonly counts = { ok: 0, failed: 0 };
  /** Of exchanges that succeeded. */
  readonly durations = new Durations(DURATION_BOUNDS);
  /** Processes that were seen lately, this one included. */
  processes = 1;
  /** The last exchange failed; its error. */
  failure: Error | null = null;
  /** When the first of the exchanges that have failed since began (monotonic ms); Infinity: the last one succeeded. */
  failingSince = Infinity;
  /** When the last exchange that succeeded began (monotonic ms). */
  confirmedAt = -Infinity;
  /** When the first of the exchanges that have succeeded since began (monotonic ms); Infinity: the last one failed. */
  private connectedAt = Infinity;
  private readonly logger = new Logger('Limits');
  private readonly outage = new OutageLog(this.logger);
  private readonly failing = new FailingSpell();
  private readonly channel: Channel;
  private readonly connection: RenewedConnection;
  private readonly due = new Set<Meter>();
  private seq = 0;
  private startedAt = -Infinity;
  private timer: NodeJS.Timeout | null = null;
  private underWay: Promise<void> | null = null;
  private isWanted = false;
  private stopped = false;

  constructor(
    private readonly options: ExchangeOptions,
    private readonly clock: PostgresClock,
    private readonly periods: Periods,
    private readonly listener: ExchangeListener,
  ) {
    this.channel = options.isHot === true ? HOT : OWN;
    this.connection = new RenewedConnection(options.databaseUrl, {
      applicationName: 'postern-limits',
      queryTimeout: TIMEOUT,
    });
  }

  /** Milliseconds for which exchanges have failed, all or again and again; 0 while they succeed. */
  get failingMs(): number {
    return this.failing.ms();
  }

  /** Makes a meter part of the next exchange, which begins as soon as it may. */
  request(meter: Meter): void {
    this.due.add(meter);
    this.wake();
  }

  /** Starts an exchange as soon as it may begin. */
  wake(): void {
    this.isWanted = true;
    if (this.timer !== null || this.underWay !== null || this.stopped) return;
    const spacing = this.failure === null ? this.spacing : RETRY_MS;
    this.timer = setTimeout(() => this.run(), Math.max(this.startedAt + spacing - performance.now(), 0));
  }

  /** Called each second: adds what is due, and keeps the process known. */
  tick(now: number, meters: Iterable<Meter>, isAlive: boolean): void {
    for (const meter of meters) if (meter.isDue(now)) this.due.add(meter);
    if (this.due.size > 0 || (isAlive && now - this.startedAt >= HEARTBEAT_MS)) this.wake();
  }

  /** The last exchange. Never rejects. */
  async stop(meters: Iterable<Meter>): Promise<void> {
    this.stopped = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const until = performance.now() + STOPPING.ms;
    await this.underWay;
    // Nothing to return, and Postgres has no row of this process.
    if (this.seq > 0) {
      for (const meter of meters) this.due.add(meter);
      for (;;) {
        const due = this.due.size;
        const succeeded = await this.exchange(this.options.regressions?.server ?? null);
        if (!succeeded || this.due.size === 0) break;
        if (this.due.size < due) continue;
        // Other transactions have locked these. If this process does not return its holds, they stay until `voidMs`.
        if (performance.now() >= until) break;
        await sleep(this.channel.spacingMs);
      }
    }
    await this.connection.end();
  }

  private get spacing(): number {
    const { spacingMs, spacingPerProcessMs } = this.channel;
    // At random, so that processes which have begun at the same time do not queue up for ever.
    return Math.max(spacingMs, spacingPerProcessMs * this.processes * (0.5 + Math.random()));
  }

  private run(): void {
    this.timer = null;
    this.isWanted = false;
    this.underWay = this.exchangeLater().then((succeeded) => {
      this.underWay = null;
      this.listener.ended(succeeded);
      if (this.isWanted || this.due.size > 0) this.wake();
    });
  }

  /** Calls go on with what this process holds while it waits. @returns false if it failed */
  private async exchangeLater(): Promise<boolean> {
    const { regressions } = this.options;
    this.startedAt = performance.now();
    try {
      return await this.exchange(regressions === undefined ? null : await regressions.admitted());
    } catch (error) {
      this.failed(error, this.startedAt);
      return false;
    }
  }

  /** @param server the only one on which it is executed; null: any @returns false if it failed */
  private async exchange(server: string | null): Promise<boolean> {
    const askedAt = performance.now();
    this.startedAt = askedAt;
    const sent = this.collect(askedAt);
    try {
      const client = await this.connection.open();
      const sentAt = performance.now();
      const { rows } = await client.query<{ result: Result | null; same: boolean }>({
        ...exchangeOf(this.channel.name),
        values: [
          this.options.process,
          ++this.seq,
          this.options.voidMs / 1_000,
          JSON.stringify(this.periods.asked()),
          JSON.stringify(sent.holds),
          JSON.stringify(sent.rates),
          server,
        ],
      });
      const { result, same } = rows[0]!;
      if (!same) {
        this.options.regressions?.doubt();
        throw new Error('Postgres is another server than before, and is compared with this process first');
      }
      if (result === null) throw new Error('Postgres has executed a newer message of this process');
      this.apply(sent, result, sentAt, askedAt);
      this.confirmedAt = askedAt;
      if (this.failure !== null) this.listener.recovered();
      this.failure = null;
      this.failingSince = Infinity;
      this.failing.succeeded();
      this.connectedAt = Math.min(this.connectedAt, askedAt);
      this.counts.ok++;
      this.durations.add(performance.now() - askedAt);
      this.outage.ended('Limits are exchanged with Postgres again.');
      return true;
    } catch (error) {
      this.repeat(sent, null);
      this.failed(error, askedAt);
      await this.connection.close();
      return false;
    }
  }

  private failed(error: unknown, askedAt: number): void {
    this.failure = error as Error;
    this.failingSince = Math.min(this.failingSince, askedAt);
    this.connectedAt = Infinity;
    this.failing.failed();
    this.counts.failed++;
    if (!this.stopped) this.outage.report('Limits cannot be exchanged with Postgres', describeError(error));
  }

  private collect(now: number): Sent {
    const sent: Sent = { holds: [], rates: [], meters: [] };
    // Those that have been due the longest; the others follow in the next exchange.
    for (const meter of this.due) {
      if (sent.meters.length === MAX_METERS) break;
      sent.meters.push(meter);
      this.due.delete(meter);
    }
    // After an outage, the others may take as long as this process to come back.
    const goneMs = now - this.connectedAt >= GONE_MS ? GONE_MS : this.options.voidMs;
    sent.meters.forEach((meter, n) => {
      if (meter instanceof HoldMeter) sent.holds.push({ n, ...meter.entry(now, goneMs) });
      else if (meter instanceof RateMeter) sent.rates.push({ n, ...meter.entry(now) });
    });
    return sent;
  }

  private apply(sent: Sent, result: Result, sentAt: number, askedAt: number): void {
    const { meters } = sent;
    const now = performance.now();
    const results = [...(result.holds ?? []), ...(result.rates ?? [])];
    for (const { n } of results) meters[n]!.askedAt = askedAt;
    this.clock.set(result.now, sentAt, now);
    this.processes = Math.max(result.processes, 1);
    this.periods.add(result.windows ?? []);
    for (const one of result.holds ?? []) (meters[one.n] as HoldMeter).apply(one, askedAt);
    for (const one of result.rates ?? []) (meters[one.n] as RateMeter).apply(one, now);
    this.repeat(sent, new Set(results.map(({ n }) => n)));
  }

  /** Makes what was not executed part of the next exchange. @param executed null: unknown; others were locked */
  private repeat({ holds, rates, meters }: Sent, executed: ReadonlySet<number> | null): void {
    for (const entry of [...holds, ...rates]) {
      const meter = meters[entry.n]!;
      if (executed?.has(entry.n) || meter.rule.removed) continue;
      meter.failed(entry, executed !== null);
      this.due.add(meter);
    }
  }
}
