import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { cliCommand } from '../platform/cli-command.js';
import { patience } from '../platform/patience.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { LookupPool } from '../database/lookup-pool.js';
import { Regressions } from '../regressions/regressions.service.js';
import { KeyChangesService } from '../auth/key-changes.service.js';
import { Journal } from '../request-log/journal/journal.js';
import { LogWriter } from '../request-log/writer/log-writer.js';
import { ShutdownService } from './shutdown.service.js';

/** Postgres confirms the cached keys every 2 s; after this time two confirmations have failed. */
const UNAVAILABLE = patience('Postgres before degraded', 5_000);
/** An orchestrator waits one or two seconds for a response. */
const QUERY = patience('Postgres for readiness', 1_000);

export interface Readiness {
  /** `degraded`: calls are served, but not everything works. */
  status: 'ok' | 'degraded' | 'unavailable';
  /** For operators. */
  reasons: string[];
}

/** Reports whether calls can be served, and if not, why. */
@Injectable()
export class ReadinessService {
  /** The query that is in flight. */
  private query: Promise<boolean> | null = null;
  private readonly checks: (() => string[])[] = [];

  constructor(
    private readonly database: DatabaseService,
    private readonly lookups: LookupPool,
    private readonly changes: KeyChangesService,
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly shutdown: ShutdownService,
    private readonly regressions: Regressions,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** Registers what a module reports as not working while calls are served all the same. */
  addCheck(reasons: () => string[]): void {
    this.checks.push(reasons);
  }

  async now(): Promise<Readiness> {
    const { database, journal } = this;
    const fatal: string[] = [];
    const minor: string[] = [];
    if (this.shutdown.draining) fatal.push('shutting down');
    if (database.migrationsPending) fatal.push(`migrations are pending; run "${cliCommand('migrate')}"`);
    else if (database.notReady !== null) fatal.push('the database is not ready');
    else if (this.silentMs > UNAVAILABLE.ms) {
      if (this.silentMs <= this.env.keyCacheStaleMs)
        minor.push('Postgres is unavailable; cached keys still work');
      // Perhaps only the connection that follows changes has failed.
      else if (await this.responds()) minor.push('changes to keys and providers are delayed');
      else fatal.push('Postgres has been unavailable for longer than KEY_CACHE_STALE_MS');
    } else if (this.writer.failingMs > UNAVAILABLE.ms) minor.push('Postgres is not accepting log rows');
    if (!journal.accepting) fatal.push('the journal cannot be written');
    else if (journal.degraded !== null) minor.push('the journal is degraded');
    if (this.writer.future.count > 0)
      minor.push('rows wait because they start more than 2 days ahead of the database; check the clocks');
    minor.push(...this.regressions.reasons);
    minor.push(...this.checks.flatMap((reasons) => reasons()));
    const status = fatal.length > 0 ? 'unavailable' : minor.length > 0 ? 'degraded' : 'ok';
    return { status, reasons: [...fatal, ...minor] };
  }

  /** Milliseconds since the last confirmation by Postgres. */
  private get silentMs(): number {
    return performance.now() - Math.max(this.changes.verifiedAt, this.database.readyAt);
  }

  /** Concurrent readiness requests share one query: anybody may send them, and key look-ups need the connections. */
  private responds(): Promise<boolean> {
    this.query ??= this.lookups
      .query('SELECT 1')
      .then(
        () => true,
        () => false,
      )
      .finally(() => (this.query = null));
    return Promise.race([this.query, sleep(QUERY.ms, false, { ref: false })]);
  }
}
