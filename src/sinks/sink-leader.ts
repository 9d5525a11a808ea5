import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { describeError } from '../errors/describe-error.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { LAST_ID, type Place } from '../request-log/log-cursor.js';
import { LogSpan } from '../request-log/log-span.js';
import { recordedUntil } from '../request-log/recorded-until.js';
import { SinkError, type SinkSender } from './senders/sink-sender.js';
import type { SinkSenders } from './senders/open-sender.js';
import {
  type Batch,
  beginBatch,
  endBatch,
  readProgress,
  type SinkProgress,
  skipTo,
  storeFailure,
} from './sink-progress.js';
import { MAX_ROWS, readGroups, type RowGroup, type RowGroups, rowsOf, WHOLE } from './sink-rows.js';
import type { SinkSecrets } from './sink-secrets.service.js';

/** How often new rows are looked for. */
const LOOK_MS = 1_000;
/** A cursor is moved over a time without rows in steps of this length at least: each move is a transaction. */
const SKIP_MS = 3_000;
const MAX_PAUSE_MS = 15_000;

const NOTHING: RowGroups = { groups: [], isFull: false };

/** What one sink did in this process, for metrics. */
export interface SinkCounts {
  rows: number;
  failures: number;
}

/** Rows between a place and a time. */
interface Reading {
  groups: readonly RowGroup[];
  rows: number;
  until: Date;
  hasMore: boolean;
}

/**
 * Sends the rows of the request log to one sink, while this process holds the lock of the sink. The client is the one that
 * holds it, so that a lost lock ends the work.
 *
 * The end and the token of a batch are stored before its first message is sent, and the cursor moves when the sink has all
 * of them. Whoever continues after a crash sends the same messages under the same IDs, which the sink recognises.
 */
export class SinkLeader {
  private sender: SinkSender | null = null;
  private version = 0;
  private readonly span = new LogSpan(MAX_ROWS);
  private failures = 0;
  /** What comes after the batch that is being sent. */
  private ahead: { after: Place; reading: Promise<Reading> } | null = null;

  constructor(
    private readonly client: pg.PoolClient,
    private readonly id: string,
    private readonly senders: SinkSenders,
    private readonly secrets: SinkSecrets,
    private readonly counts: SinkCounts,
    private readonly signal: AbortSignal,
  ) {}

  /** Resolves when the sink is paused or removed. @throws any error of the database */
  async run(): Promise<void> {
    try {
      while (!this.signal.aborted) {
        const sink = await readProgress(this.client, this.id);
        if (sink === null) return;
        await this.step(sink);
      }
    } finally {
      await this.disconnect();
    }
  }

  private async step(sink: SinkProgress): Promise<void> {
    try {
      const sender = await this.connected(sink);
      if (sink.batch !== null) await this.sendAgain(sink, sink.batch, sender);
      else if (!(await this.sendNext(sink, sender))) await this.pause(LOOK_MS);
      this.failures = 0;
    } catch (error) {
      if (!(error instanceof SinkError)) throw error;
      await this.disconnect();
      this.failures++;
      this.counts.failures++;
      await storeFailure(this.client, sink.id, error.message);
      await this.pause(Math.min(500 * 2 ** this.failures, MAX_PAUSE_MS));
    }
  }

  /** @returns whether there may be more rows */
  private async sendNext(sink: SinkProgress, sender: SinkSender): Promise<boolean> {
    const { groups, rows, until, hasMore } = await this.rowsAfter(sink.cursor, sender);
    if (groups.length === 0) {
      if (hasMore || until.getTime() - sink.cursor.recordedAt.getTime() >= SKIP_MS)
        await skipTo(this.client, sink, until);
      return hasMore;
    }
    const batch = { token: randomUUID(), ends: groups.map(({ end }) => end) };
    if (!(await beginBatch(this.client, sink, batch))) return true;
    if (hasMore) this.readAhead(batch.ends.at(-1)!, sender);
    await this.send(batch, groups.entries(), sender);
    await this.finish(batch, rows);
    return hasMore;
  }

  /** Reads what comes after the batch that is sent meanwhile. Its own batch begins when that one has ended. */
  private readAhead(after: Place, sender: SinkSender): void {
    const reading = this.read(after, sender);
    // Whoever needs the rows gets the error; if nobody does, the next query of this client fails as well.
    reading.catch(() => {});
    this.ahead = { after, reading };
  }

  /** The rows read ahead, if the cursor is where they begin. */
  private rowsAfter(cursor: Place, sender: SinkSender): Promise<Reading> {
    const { ahead } = this;
    this.ahead = null;
    const isNext =
      ahead?.after.id === cursor.id && ahead.after.recordedAt.getTime() === cursor.recordedAt.getTime();
    return isNext ? ahead.reading : this.read(cursor, sender);
  }

  private async read(after: Place, { format }: SinkSender): Promise<Reading> {
    const horizon = await recordedUntil(this.client);
    const until = this.span.end(after.recordedAt, horizon);
    const { groups, isFull } =
      until < after.recordedAt
        ? NOTHING
        : await readGroups(this.client, after, { recordedAt: until, id: LAST_ID }, format);
    const isLast = until.getTime() >= horizon.getTime();
    const rows = rowsOf(groups);
    const fullMs = () => groups.at(-1)!.end.recordedAt.getTime() - groups[0]!.from.getTime();
    this.span.found(rows, isFull ? fullMs() : null, isLast);
    return { groups, rows, until, hasMore: !isLast || isFull };
  }

  /** Continues a batch that this or another process began. Rows that were updated meanwhile have left it and come later. */
  private async sendAgain(sink: SinkProgress, batch: Batch, sender: SinkSender): Promise<void> {
    const last = (await sender.lastId?.()) ?? '';
    const stored = last.startsWith(`${batch.token}:`) ? Number(last.slice(batch.token.length + 1)) : -1;
    // The boundaries are stored. Rows may have become shorter, or longer since the release that stored them.
    const format = { ...sender.format, ...WHOLE };
    let after: Place = sink.cursor;
    let rows = 0;
    for (const [index, end] of batch.ends.entries()) {
      const { groups } = await readGroups(this.client, after, end, format);
      after = end;
      rows += rowsOf(groups);
      // A message that has lost all its rows to updates needs not be sent.
      if (index > stored && groups[0] !== undefined) await this.send(batch, [[index, groups[0]]], sender);
    }
    await this.finish(batch, rows);
  }

  private async send(
    { token }: Batch,
    groups: Iterable<readonly [index: number, RowGroup]>,
    sender: SinkSender,
  ): Promise<void> {
    for (const [index, { body }] of groups) {
      // What is begun is finished by the next start.
      if (this.signal.aborted) throw new SinkStopped();
      await sender.send({ id: `${token}:${index}`, body });
    }
  }

  private async finish(batch: Batch, rows: number): Promise<void> {
    if (await endBatch(this.client, batch, rows)) this.counts.rows += rows;
  }

  private async connected(sink: SinkProgress): Promise<SinkSender> {
    if (this.version !== sink.version) await this.disconnect();
    this.version = sink.version;
    try {
      const access = this.secrets.open(sink.id, sink.sealed);
      this.sender ??= await this.senders.open(sink.kind, access, sink.target);
      return this.sender;
    } catch (error) {
      if (!(error instanceof SecretBoxError)) throw error;
      throw new SinkError(`The secret of the sink cannot be decrypted: ${error.message}.`);
    }
  }

  private async disconnect(): Promise<void> {
    const { sender } = this;
    this.sender = null;
    this.ahead = null;
    // A connection that is broken already.
    await sender?.close().catch((error: unknown) => describeError(error));
  }

  private async pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.signal, ref: false }).catch(() => {});
  }
}

/** The process ends. */
class SinkStopped extends Error {
  override readonly name = 'SinkStopped';
}
