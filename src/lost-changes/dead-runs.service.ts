import { join } from 'node:path';
import { Injectable, Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ChangeFeed } from '../database/change-feed.js';
import { KnownEnds } from '../database/known-ends/known-ends.js';
import { addPutBack, note, readRuns } from '../regressions/regression-store.js';
import { drainerOf, runDirectories, runOf } from '../request-log/journal/run-directories.js';
import { endsOf } from './end-of.js';
import { EntryTail, KEPT_FOLDER, readKnown } from './entry-tail.service.js';
import { readKept, removeKept } from './kept-entries.js';
import { LostChanges } from './lost-changes.service.js';

/**
 * At the start, puts back what processes that have ended had read of the audit log and Postgres does not have any more. Their
 * files are removed once Postgres has everything in them.
 */
@Injectable()
export class DeadRuns {
  private readonly logger = new Logger('Audit');
  private readonly root: string;
  /** Folders that are still to be compared; null: none was looked for yet. */
  private folders: string[] | null = null;
  /** Those that wait for an administrator: what they have ended is rejected meanwhile, as by a process that still runs. */
  private readonly rejected = new Set<string>();

  constructor(
    private readonly tail: EntryTail,
    private readonly changes: LostChanges,
    private readonly ends: KnownEnds,
    @InjectSettings() private readonly env: Settings,
    feed: ChangeFeed,
  ) {
    this.root = join(env.dataDir, KEPT_FOLDER);
    feed.onPoll('What processes that have ended had read of the audit log', (client) => this.compare(client));
  }

  private async compare(client: ClientBase): Promise<void> {
    this.folders ??= await this.find();
    for (const folder of [...this.folders]) {
      if (!(await this.compareOne(client, folder))) continue;
      this.folders = this.folders.filter((each) => each !== folder);
    }
  }

  /** DATA_DIR belongs to one instance with one process per worker number, so none of these lives. */
  private async find(): Promise<string[]> {
    const folders = await runDirectories(this.root).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    const { worker, workers } = this.env;
    return folders.filter((folder) => folder !== this.tail.folder && drainerOf(folder, workers) === worker);
  }

  /** @returns false if it waits for an administrator */
  private async compareOne(client: ClientBase, folder: string): Promise<boolean> {
    const { server, runs, regression } = await readRuns(client, [runOf(folder)]);
    if (regression?.state === 'another_database') return false;
    if (regression?.state === 'waiting') {
      await this.rejectEndsIn(folder);
      return false;
    }
    const known = readKnown((await readKept(folder)).map(({ entry }) => entry));
    const missing = await this.changes.missingOf(known);
    if (missing.length === 0 || regression?.state === 'dismissed') {
      await removeKept(folder);
      return true;
    }
    const run = runs.get(runOf(folder));
    const newest = Math.max(...missing.map(({ row }) => Date.parse(row.at)));
    const isUnknown = run === undefined;
    if (isUnknown || (newest - run.at > this.env.journalKeepMs && regression?.state !== 'put_back')) {
      this.logger.error(
        `Postgres does not have ${missing.length} entries of the audit log that ${folder} has, and ` +
          (isUnknown ? 'does not know the process that has read them' : 'more than JOURNAL_KEEP_MS is lost') +
          ', as after a restored backup: they are not put back. Repeat the revocations in its files that are to stay, ' +
          'then remove the folder.',
      );
      return true;
    }
    this.tail.learn(
      known.map(({ row }) => row),
      true,
    );
    const counts = await this.changes.putBackEndsOf(known, server);
    const from = Math.min(...missing.map(({ row }) => Date.parse(row.at)));
    const facts = { from, gap: Math.ceil(Math.max(newest - from, 0) / 1_000), state: 'put_back' as const };
    await addPutBack(client, (await note(client, server, facts, {}, {})).id, counts);
    await this.changes.insertOthers(known, server);
    await removeKept(folder);
    return true;
  }

  private async rejectEndsIn(folder: string): Promise<void> {
    if (this.rejected.has(folder)) return;
    const rows = readKnown((await readKept(folder)).map(({ entry }) => entry)).map(({ row }) => row);
    this.tail.learn(rows, true);
    this.ends.doubt(rows.flatMap((row) => endsOf(row).map(({ id }) => id)));
    this.rejected.add(folder);
  }
}
