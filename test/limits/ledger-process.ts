import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';
import type { Settings } from '../../src/config/settings.js';
import { ChangeFeed } from '../../src/database/change-feed.js';
import type { DatabaseService } from '../../src/database/database.service.js';
import { usdOf } from '../../src/limit-rules/usd.js';
import { LedgerService } from '../../src/limits/ledger/ledger.service.js';
import type { CallReservation, Counted } from '../../src/limits/ledger/ledger.js';
import { RuleCache } from '../../src/limits/ledger/rule-cache.js';
import type { Ticket } from '../../src/limits/ledger/ticket.js';
import { dollarsOf } from '../../src/request-log/column-domains.js';
import type { LogRow } from '../../src/request-log/columns.js';
import { ProcessRun } from '../../src/regressions/process-run.js';
import { RunCounter } from '../../src/regressions/run-counter.js';
import type { JournalDrainService } from '../../src/request-log/journal/journal-drain.service.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import { LogWriter } from '../../src/request-log/writer/log-writer.js';
import { drainOf } from '../request-log/log-harness.js';
import { logRow } from '../request-log/rows.js';

export interface LedgerSettings {
  databaseUrl: string;
  dataDir?: string;
  withoutDatabase?: 'reject' | 'allow';
  staleMs?: number;
}

/** The engine with the log writer, the journal and the change feed, as a gateway has them, without the proxy. */
export class LedgerProcess {
  private constructor(
    readonly dataDir: string,
    readonly ledger: LedgerService,
    readonly rules: RuleCache,
    readonly journal: Journal,
    readonly writer: LogWriter,
    readonly drain: JournalDrainService,
    private readonly others: readonly OnApplicationShutdown[],
  ) {}

  static async start(settings: LedgerSettings): Promise<LedgerProcess> {
    Logger.overrideLogger(false);
    const { databaseUrl, withoutDatabase = 'reject', staleMs = 600_000 } = settings;
    const dataDir = settings.dataDir ?? (await mkdtemp(join(tmpdir(), 'postern-ledger-')));
    const env = {
      dataDir,
      databaseUrl,
      journalFsyncMs: 100,
      journalKeepMs: 0,
      journalKeepBytes: 0,
      worker: 1,
      workers: 1,
      keyCacheStaleMs: staleMs,
      limitsWithoutDatabase: withoutDatabase,
      requestLogUsers: 'plain',
      attribution: 'all',
      masterKey: Buffer.alloc(32, 7),
    } as unknown as Settings;
    const hooks: (() => Promise<void>)[] = [];
    const database = {
      notReady: null,
      whenReady: (hook: () => Promise<void>) => void hooks.push(hook),
    } as unknown as DatabaseService;
    const feed = new ChangeFeed(env, database);
    const dataSource = {
      query: async (text: string, values?: unknown[]) => {
        const client = new pg.Client({ connectionString: databaseUrl });
        await client.connect();
        const { rows } = await client.query(text, values);
        await client.end();
        return rows as unknown[];
      },
    };
    const rules = new RuleCache(dataSource as never, feed, database);
    const run = new ProcessRun();
    const journal = new Journal(env, run);
    journal.onModuleInit();
    const ledger = new LedgerService(dataSource as never, rules, feed, database, journal, env);
    const writer = new LogWriter(env, journal, database, ledger);
    const { drain, lost, regressions } = drainOf({
      env,
      counter: new RunCounter(run),
      feed,
      journal,
      writer,
      database,
    });
    // The rules first: the feed, which was made first, would read them too.
    for (const hook of hooks.slice(1)) await hook();
    await hooks[0]!();
    return new LedgerProcess(dataDir, ledger, rules, journal, writer, drain, [lost, regressions, feed]);
  }

  admit(
    teamId: string,
    keyId: string,
    reservation: CallReservation,
    id = uuidv7(),
  ): Promise<Ticket> | Ticket {
    return this.ledger.admit(this.ledger.rulesOf(teamId, keyId)!, id, countedFor(''), reservation);
  }

  /** The row of an admitted call, its start journalled. */
  begin(ticket: Ticket, keyId: string, teamId: string): { row: LogRow; end: (usd: bigint) => void } {
    const startedAt = parseInt(ticket.id.slice(0, 8) + ticket.id.slice(9, 13), 16);
    const row: LogRow = {
      ...logRow(startedAt),
      id: ticket.id,
      key_id: keyId,
      team_id: teamId,
      charge_usd: dollarsOf(ticket.reservation?.usd),
      charge_tokens: ticket.reservation?.tokens ?? null,
      limit_subject: ticket.reservation?.subject ?? null,
      limit_session: ticket.reservation?.session ?? null,
      charge_rules: ticket.reservation?.budgets.named('openai', null) ?? null,
    };
    const files = [this.journal.append({ t: 'B', ...row })];
    const end = (usd: bigint) => {
      row.cost_usd = usdOf(usd);
      files.push(this.journal.append({ t: 'E', ...row }), this.journal.append({ t: 'U', ...row }));
      ticket.settle({ usd: Number(usd), tokens: null });
      this.writer.add(row, files);
    };
    return { row, end };
  }

  async stop(): Promise<void> {
    for (const other of this.others) await other.onApplicationShutdown();
    this.drain.onApplicationShutdown();
    await this.writer.stop();
    await this.journal.close();
  }
}

/** A call of an end user, by its hash, and of no session. */
export function countedFor(endUser: string): Counted {
  return { endUser, session: null, isModelKnown: true };
}
