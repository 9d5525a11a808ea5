import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { describeError } from '../errors/describe-error.js';
import { SecretBoxError } from '../platform/secret-box.js';
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
import { LAST_ID, MOST_ROWS, readGroups, type RowGroup } from './sink-rows.js';
import type { SinkSecrets } from './sink-secrets.service.js';
import type { Place } from './sink.entity.js';

/** How often new rows are looked for. */
const LOOK_MS = 1_000;
/** A cursor is moved over a time without rows in steps of this length at least: each move is a transaction. */
const SKIP_MS = 3_000;
const LONGEST_SPAN_MS = 366 * 86_400_000;
const LONGEST_PAUSE_MS = 15_000;

/** What one sink did in this process, for metrics. */
export interface SinkCounts {
  rows: number;
  failures: number;
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
  /** Rows of this much time are looked at together: there is no index that finds the next row in a long log. */
  private spanMs = 60_000;
  private failures = 0;

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
      await this.pause(Math.min(500 * 2 ** this.failures, LONGEST_PAUSE_MS));
    }
  }

  /** @returns whether there may be more rows */
  private async sendNext(sink: SinkProgress, sender: SinkSender): Promise<boolean> {
    const horizon = await recordedUntil(this.client);
    const from = sink.cursor.recordedAt.getTime();
    const until = new Date(Math.min(from + this.spanMs, horizon.getTime()));
    const groups =
      until.getTime() < from
        ? []
        : await readGroups(this.client, sink.cursor, { recordedAt: until, id: LAST_ID }, sender.size);
    const isLast = until.getTime() >= horizon.getTime();
    if (groups.length === 0) {
      this.spanMs = Math.min(this.spanMs * 4, LONGEST_SPAN_MS);
      if (!isLast || until.getTime() - from >= SKIP_MS) await skipTo(this.client, sink, until);
      return !isLast;
    }
    const rows = sum(groups);
    // Ever shorter while there are far more rows than a batch takes: the rest would be read and sorted again and again.
    if (rows === MOST_ROWS) this.spanMs = Math.max(Math.floor(this.spanMs / 2), 1);
    else if (!isLast && rows < MOST_ROWS / 2) this.spanMs = Math.min(this.spanMs * 2, LONGEST_SPAN_MS);
    const batch = { token: randomUUID(), ends: groups.map(({ end }) => end) };
    if (!(await beginBatch(this.client, sink, batch))) return true;
    await this.send(batch, groups.entries(), sender);
    await this.finish(batch, rows);
    return !isLast || rows === MOST_ROWS;
  }

  /** Continues a batch that this or another process began. Rows that were updated meanwhile have left it and come later. */
  private async sendAgain(sink: SinkProgress, batch: Batch, sender: SinkSender): Promise<void> {
    const last = (await sender.lastId?.()) ?? '';
    const stored = last.startsWith(`${batch.token}:`) ? Number(last.slice(batch.token.length + 1)) : -1;
    let after: Place = sink.cursor;
    let rows = 0;
    for (const [index, end] of batch.ends.entries()) {
      const groups = await readGroups(this.client, after, end, { rows: MOST_ROWS, bytes: 2 ** 40 });
      after = end;
      rows += sum(groups);
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

function sum(groups: readonly RowGroup[]): number {
  return groups.reduce((total, { rows }) => total + rows, 0);
}
