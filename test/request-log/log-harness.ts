import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Settings } from '../../src/config/settings.js';
import type { DatabaseService } from '../../src/database/database.service.js';
import { JournalDrainService } from '../../src/request-log/journal/journal-drain.service.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { LogWriter } from '../../src/request-log/writer/log-writer.js';
import type { LogRow } from '../../src/request-log/columns.js';
import { recordsOf, rowsOf } from './journal-calls.js';

/** The request log's own parts on real files and a real Postgres, without a gateway. */
export class LogHarness {
  private constructor(
    readonly dataDir: string,
    readonly journal: Journal,
    readonly writer: LogWriter,
    readonly drain: JournalDrainService,
  ) {}

  static async start(
    databaseUrl: string,
    { dataDir, fsyncMs = 100 }: { dataDir?: string; fsyncMs?: number } = {},
  ): Promise<LogHarness> {
    Logger.overrideLogger(false);
    const folder = dataDir ?? (await mkdtemp(join(tmpdir(), 'postern-log-')));
    const env = { dataDir: folder, databaseUrl, journalFsyncMs: fsyncMs, worker: 1, workers: 1 } as Settings;
    const hooks: (() => Promise<void>)[] = [];
    // Only says when: migrating and connecting for look-ups is not the log's business.
    const database = {
      notReady: null,
      whenReady: (hook: () => Promise<void>) => void hooks.push(hook),
    } as unknown as DatabaseService;
    const journal = new Journal(env);
    journal.onModuleInit();
    const writer = new LogWriter(env, journal, database);
    const drain = new JournalDrainService(journal, writer, env, database);
    for (const hook of hooks) await hook();
    return new LogHarness(folder, journal, writer, drain);
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
  }

  async remove(): Promise<void> {
    await rm(this.dataDir, { recursive: true, force: true });
  }
}
