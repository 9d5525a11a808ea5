import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { SessionRecorder } from '../admin/sessions/session-recorder.js';
import { byTime, type EntryRow, missingEntries, putBackEntry } from '../audit/entry-rows.js';
import { recordChange } from '../audit/record-change.js';
import { KnownEnds, SERVER_STARTED } from '../database/known-ends/known-ends.js';
import type { Actor } from '../platform/actor.js';
import type { LostEntry } from '../regressions/database-regression.entity.js';
import type { PutBack, Regression } from '../regressions/regression.js';
import { Regressions } from '../regressions/regressions.service.js';
import { endsOf } from './end-of.js';
import { EntryTail, type KnownEntry } from './entry-tail.service.js';
import { putBackEnds } from './put-back-end.js';

/** Who puts entries back. */
const BY: Actor = { name: 'failover', address: null };

/** What nobody repeats: this process's own work, and that somebody has signed in. */
const NOT_REPEATED = new Set(['put_back', 'signed_in']);

/**
 * Puts back the entries of the audit log that Postgres has lost, and applies again what they had ended. The transaction that
 * inserts an entry applies it, so that one of several processes does.
 *
 * Ends first. What is lost and not applied is noted for an administrator before its entries are there again: if this process
 * is killed in between, another one, or its next start, finds them missing and notes them.
 */
@Injectable()
export class LostChanges {
  private readonly logger = new Logger('Audit');
  /** Of attempts that failed later on. */
  private done = 0;

  constructor(
    private readonly tail: EntryTail,
    private readonly ends: KnownEnds,
    private readonly dataSource: DataSource,
    private readonly sessions: SessionRecorder,
    regressions: Regressions,
  ) {
    const refuse = () => this.refuse();
    const dismissed = ({ server }: Regression) => this.dismissed(server);
    const first = { refuse, putBack: (regression: Regression) => this.putBackEnds(regression), dismissed };
    const then = { putBack: (regression: Regression) => this.putBackOthers(regression) };
    for (const handler of [first, then]) {
      regressions.onRegression('ends', handler);
      regressions.onNewServer(handler);
    }
  }

  private async refuse(): Promise<void> {
    this.tail.hold();
    this.tail.learn(
      (await this.tail.all()).map(({ row }) => row),
      true,
    );
  }

  private dismissed(server: string): void {
    this.ends.forget(server);
    this.tail.forget();
  }

  private async putBackEnds({ server, signal }: Regression): Promise<PutBack> {
    return this.putBackEndsOf(await this.tail.all(), server, signal);
  }

  private async putBackOthers({ server, signal }: Regression): Promise<PutBack> {
    await this.insertOthers(await this.tail.all(), server);
    if (!signal.aborted) {
      this.ends.confirm(server);
      this.tail.release();
    }
    return {};
  }

  /** @returns what an administrator must repeat, and how many ends are in force again */
  async putBackEndsOf(
    known: readonly KnownEntry[],
    server: string,
    signal?: AbortSignal,
  ): Promise<Required<Pick<PutBack, 'ends' | 'lostEntries'>>> {
    const missing = await this.missingOf(known);
    for (const each of missing.filter(({ row }) => isApplied(row))) {
      if (signal?.aborted) break;
      // Set later by an entry that is lost too.
      const later = missing.filter(
        ({ row }) => row.subject_id === each.row.subject_id && byTime(row, each.row) > 0,
      );
      if (await this.putBackOne(each, later, server)) this.done++;
    }
    const lost = missing.map(({ row }) => row).filter((row) => isRepeated(row));
    if (missing.length > 0)
      this.logger.warn(
        `Postgres has lost ${missing.length} entries of the audit log: ${this.done} ends are in force again, ${lost.length} changes are for an administrator to repeat.`,
      );
    const ends = this.done;
    this.done = 0;
    return { ends, lostEntries: lost.map(lostEntry) };
  }

  /** Puts back the entries that are not applied. */
  async insertOthers(known: readonly KnownEntry[], server: string): Promise<void> {
    const missing = await this.missingOf(known);
    if (missing.length === 0) return;
    await this.transaction(server, async (manager) => {
      for (const { entry } of missing) await putBackEntry(manager, entry);
    });
  }

  /** Those that Postgres does not have. */
  async missingOf(known: readonly KnownEntry[]): Promise<KnownEntry[]> {
    if (known.length === 0) return [];
    const ids = known.map(({ row }) => row.id);
    const missing = await missingEntries(this.dataSource.manager, ids);
    return known.filter(({ row }) => missing.has(row.id));
  }

  private putBackOne(
    { entry, row }: KnownEntry,
    later: readonly KnownEntry[],
    server: string,
  ): Promise<boolean> {
    return this.transaction(server, async (manager) => {
      if (!(await putBackEntry(manager, entry))) return false;
      const isLater = (setting: string) =>
        later.some(({ row }) => row.after !== null && setting in row.after);
      if (!(await putBackEnds(manager, this.sessions, row, BY, isLater))) return false;
      const { id, at, actor, action, subject_type: type, subject_id, subject_name: name } = row;
      const after = { id: subject_id, name, entry: id, at, actor, action };
      await recordChange(manager, BY, { action: 'put_back', type, before: null, after });
      return true;
    });
  }

  /** @throws Error if Postgres is another server */
  private transaction<T>(server: string, work: (manager: EntityManager) => Promise<T>): Promise<T> {
    return this.dataSource.transaction(async (manager) => {
      const [found] = await manager.query<[{ server: string }]>(`SELECT ${SERVER_STARTED} AS server`);
      if (found.server !== server) throw new Error('Postgres is another server than before');
      return work(manager);
    });
  }
}

/** Whether the entry is applied when it is put back. */
function isApplied(row: EntryRow): boolean {
  return row.action === 'rotated' || endsOf(row).length > 0;
}

/** Whether an administrator must repeat the change. Only some of what a rotation does is applied. */
function isRepeated(row: EntryRow): boolean {
  return !NOT_REPEATED.has(row.action) && (row.action === 'rotated' || endsOf(row).length === 0);
}

function lostEntry(row: EntryRow): LostEntry {
  return {
    id: row.id,
    at: new Date(row.at).toISOString(),
    actor: row.actor,
    action: row.action,
    subjectType: row.subject_type,
    subjectId: row.subject_id,
    subjectName: row.subject_name,
  };
}
