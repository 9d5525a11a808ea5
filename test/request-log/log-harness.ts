import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { Settings } from '../../src/config/settings.js';
import { ChangeFeed } from '../../src/database/change-feed.js';
import type { DatabaseService } from '../../src/database/database.service.js';
import { ProcessRun } from '../../src/regressions/process-run.js';
import { Regressions } from '../../src/regressions/regressions.service.js';
import { RunCounter } from '../../src/regressions/run-counter.js';
import { JournalDrainService } from '../../src/request-log/journal/journal-drain.service.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { KeptOfDeadRuns } from '../../src/request-log/journal/kept-of-dead-runs.service.js';
import { LostRowsService } from '../../src/request-log/journal/lost-rows.service.js';
import { LogWriter } from '../../src/request-log/writer/log-writer.js';
import type { LogRow } from '../../src/request-log/columns.js';
import { recordsOf, rowsOf } from './journal-calls.js';

interface DrainParts {
  env: Settings;
  counter: RunCounter;
  feed: ChangeFeed;
  journal: Journal;
  writer: LogWriter;
  database: DatabaseService;
}

/** The drain of journals, with what it needs beside the log. */
export function drainOf({ env, counter, feed, journal, writer, database }: DrainParts) {
  const regressions = new Regressions(counter, feed, env);
  const lost = new LostRowsService(env, writer, regressions);
  const kept = new KeptOfDeadRuns(journal, env);
  const drain = new JournalDrainService(journal, writer, kept, lost, env, database, regressions);
  return { drain, lost, regressions };
}

/** The request log's own parts on real files and a real Postgres, without a gateway. */
export class LogHarness {
  private constructor(
    readonly dataDir: string,
    readonly journal: Journal,
    readonly writer: LogWriter,
    readonly drain: JournalDrainService,
    private readonly others: readonly OnApplicationShutdown[],
  ) {}

  static async start(
    databaseUrl: string,
    { dataDir, fsyncMs = 100, keepMs = 0 }: { dataDir?: string; fsyncMs?: number; keepMs?: number } = {},
  ): Promise<LogHarness> {
    Logger.overrideLogger(false);
    const folder = dataDir ?? (await mkdtemp(join(tmpdir(), 'postern-log-')));
    const env = {
      dataDir: folder,
      databaseUrl,
      journalFsyncMs: fsyncMs,
      journalKeepMs: keepMs,
      journalKeepBytes: 1024 * 1024 * 1024,
      worker: 1,
      workers: 1,
    } as Settings;
    const hooks: (() => Promise<void>)[] = [];
    // Only says when: migrating and connecting for look-ups is not the log's business.
    const database = {
      notReady: null,
      whenReady: (hook: () => Promise<void>) => void hooks.push(hook),
    } as unknown as DatabaseService;
    const run = new ProcessRun();
    const feed = new ChangeFeed(env, database);
    const journal = new Journal(env, run);
    journal.onModuleInit();
    const counter = new RunCounter(run);
    const counts = keepMs > 0 ? counter : null;
    const writer = new LogWriter(env, journal, database, null, null, null, counts);
    const { drain, lost, regressions } = drainOf({ env, counter, feed, journal, writer, database });
    for (const hook of hooks) await hook();
    return new LogHarness(folder, journal, writer, drain, [lost, regressions, feed]);
  }

  /** A call that ends here and now, journalled and handed over as RequestLogService does. */
  record(change: Partial<LogRow> = {}): LogRow {
    const [begin, end, usage] = recordsOf('read').map((record) => ({
      ...record,
      ...('id' in change && { id: change.id }),
      ...(record.t === 'B' && 'started_at' in change && { started_at: change.started_at }),
    }));
    const [row] = [...rowsOf([begin!, end!, usage!]).values()];
    Object.assign(row!, change);
    const files = [this.journal.append(begin!), this.journal.append(end!)];
    if (this.writer.full) {
      this.writer.spill(this.journal.append({ t: 'R', ...row! }));
      this.journal.release(files);
    } else {
      files.push(this.journal.append(usage!));
      this.writer.add(row!, files);
    }
    return row!;
  }

  /** What must hold at all times. */
  expectAccountsToAgree(): void {
    const { enqueued, persisted, spilled, rejected } = this.writer.counts;
    const parts = [persisted, this.writer.waiting, spilled, rejected];
    // Checked a thousand times a second by some tests, for which Jest's own comparison is too slow.
    if (enqueued === parts.reduce((a, b) => a + b) && Math.min(...parts) >= 0) return;
    expect({ enqueued, negative: Math.min(persisted, spilled, rejected, this.writer.waiting) < 0 }).toEqual({
      enqueued: persisted + this.writer.waiting + spilled + rejected,
      negative: false,
    });
  }

  async rejectedFiles(): Promise<string[]> {
    return readdir(join(this.journal.root, 'rejected')).catch(() => []);
  }

  /** Releases everything as a shutdown does; the folder stays. */
  async stop(): Promise<void> {
    this.drain.onApplicationShutdown();
    await this.writer.stop();
    await this.journal.close();
    for (const other of this.others) await other.onApplicationShutdown();
  }

  async remove(): Promise<void> {
    await rm(this.dataDir, { recursive: true, force: true });
  }
}
