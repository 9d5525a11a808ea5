import { Injectable } from '@nestjs/common';
import { ProcessRun } from './process-run.js';

/** Of the Postgres server, as text: the microseconds tell two servers apart. */
export const SERVER = `to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/** What a statement that is counted is sent with. */
export interface RunStamp {
  /** The server that this process has compared itself with: on another one, the statement must change nothing. */
  readonly server: string;
  /** False: the statement is executed, but not counted. */
  readonly isCounted: boolean;
  /** The last seq that had been acknowledged when it was sent. */
  readonly known: bigint;
}

/** What a statement with COUNTED returns beside its own. */
export interface CountedResult {
  /** Decimal; null: not counted. */
  seq: string | null;
  /** When the statement before was counted, in ms since 1970; null: not counted. */
  before: number | null;
  /** False: it was executed on another server, and has changed nothing. */
  same: boolean;
}

/**
 * Counts batches of rows in the statements that write them, so that it takes no round trip.
 *
 * While this process puts back what Postgres had lost, nothing is counted: the seq in Postgres stays the surviving one until
 * everything is there, so that a start after a crash knows what to put back.
 */
@Injectable()
export class RunCounter {
  private current: string | null = null;
  private setCompared: () => void = () => {};
  /** Resolves when this process has compared itself with a server for the first time. */
  readonly compared = new Promise<void>((resolve) => (this.setCompared = resolve));
  /** The last seq that Postgres has acknowledged. */
  acknowledged = 0n;
  /** A statement that was not counted has been acknowledged since counting stopped. */
  hasUncounted = false;
  /** False while this process puts back what Postgres had lost. */
  isCounting = false;
  /** What had survived when a statement found a seq that is not above the acknowledged one; null: none did. */
  lowest: { seq: bigint; at: number } | null = null;
  /** Called when a statement was executed on another server, or its seq is not above the acknowledged one. */
  onDoubt: () => void = () => {};

  constructor(private readonly process: ProcessRun) {}

  get run(): string {
    return this.process.id;
  }

  /** The server that this process has compared itself with; null: none yet. */
  get server(): string | null {
    return this.current;
  }

  set server(server: string) {
    this.current = server;
    this.setCompared();
  }

  /** Call before a statement is sent. @throws Error while this process has not compared itself with a server yet */
  stamp(): RunStamp {
    const { server, acknowledged, isCounting } = this;
    if (server === null) throw new Error('this process has not compared itself with Postgres yet');
    return { server, isCounted: isCounting, known: acknowledged };
  }

  /** The values of `counted`. */
  values({ server, isCounted }: RunStamp): string[] {
    return [this.run, server, String(isCounted)];
  }

  /**
   * Call when a statement is committed.
   *
   * @returns the seq that acknowledges it: if Postgres has a lower one for this run, it has lost the statement
   * @throws Error if it was executed on another server: it has changed nothing, and is to be sent again
   */
  acknowledge(stamp: RunStamp, { seq, before, same }: CountedResult): bigint {
    if (!same) {
      this.onDoubt();
      throw new Error('Postgres is another server than before, and is compared with this process first');
    }
    if (!stamp.isCounted) {
      this.hasUncounted = true;
      // Counting goes on with a higher one only when everything before is in Postgres.
      return this.acknowledged + 1n;
    }
    if (seq === null) {
      // The row is not there: it could not be made, was removed, or is lost. The next check says which.
      this.hasUncounted = true;
      this.onDoubt();
      return this.acknowledged + 1n;
    }
    const value = BigInt(seq);
    if (value <= stamp.known) {
      // Restored on the same server.
      const found = value - 1n;
      if (this.lowest === null || found < this.lowest.seq)
        this.lowest = { seq: found, at: before ?? Infinity };
      this.onDoubt();
    } else if (value > this.acknowledged) this.acknowledged = value;
    return this.acknowledged;
  }
}

/**
 * The query that counts a statement, for its WITH. The statement itself must change nothing unless `isSameServer` holds.
 *
 * @param first the number of the first of its three parameters
 */
export const counted = (first: number) => `
  UPDATE gateway_run SET seq = seq + 1, at = clock_timestamp()
  WHERE run = $${first}::uuid AND $${first + 2}::boolean AND ${isSameServer(first)}
  RETURNING seq, (SELECT (extract(epoch FROM r.at) * 1000)::float8 FROM gateway_run r WHERE r.run = $${first}::uuid) AS before`;

export const isSameServer = (first: number) => `pg_postmaster_start_time() = $${first + 1}::timestamptz`;

/** The columns of CountedResult, after a query `counted`. */
export const countedResult = (first: number) =>
  `(SELECT seq::text FROM counted) AS seq, (SELECT before FROM counted) AS before, ${isSameServer(first)} AS same`;
