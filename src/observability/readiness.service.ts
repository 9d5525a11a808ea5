import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { cliCommand } from '../platform/cli-command.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { KeyChangesService } from '../auth/key-changes.service.js';
import { Journal } from '../request-log/journal/journal.js';
import { LogWriter } from '../request-log/log-writer.js';
import { ShutdownService } from './shutdown.service.js';

/** Postgres confirms what is known of keys every 2 s; after this long it has failed to twice. */
const AWAY_MS = 5_000;
/** An orchestrator waits no longer than a second or two for an answer. */
const ASK_MS = 1_000;

export interface Readiness {
  /** `degraded`: calls are served, but not all that is promised holds right now. */
  status: 'ok' | 'degraded' | 'unavailable';
  /** In words for an operator. */
  reasons: string[];
}

/** Can calls be served here, and if not, why? */
@Injectable()
export class ReadinessService {
  /** The question to Postgres that is under way. */
  private asked: Promise<boolean> | null = null;

  constructor(
    private readonly database: DatabaseService,
    private readonly dataSource: DataSource,
    private readonly changes: KeyChangesService,
    private readonly journal: Journal,
    private readonly writer: LogWriter,
    private readonly shutdown: ShutdownService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  async now(): Promise<Readiness> {
    const { database, journal } = this;
    const fatal: string[] = [];
    const lesser: string[] = [];
    if (this.shutdown.draining) fatal.push('shutting down');
    if (database.migrationsPending) fatal.push(`migrations are pending; run "${cliCommand('migrate')}"`);
    else if (database.notReady !== null) fatal.push('the database is not ready');
    else if (this.silentMs > AWAY_MS) {
      if (this.silentMs <= this.env.keyCacheStaleMs) lesser.push('Postgres is away; known keys work');
      // What has been silent may be one connection of ours alone.
      else if (await this.answers()) lesser.push('changes of keys and providers arrive late');
      else fatal.push('Postgres has been away for longer than KEY_CACHE_STALE_MS');
    } else if (this.writer.failingMs > AWAY_MS) lesser.push('Postgres takes no rows of calls');
    if (!journal.accepting) fatal.push('the journal cannot be written');
    else if (journal.degraded !== null) lesser.push('the journal is degraded');
    const status = fatal.length > 0 ? 'unavailable' : lesser.length > 0 ? 'degraded' : 'ok';
    return { status, reasons: [...fatal, ...lesser] };
  }

  /** Milliseconds since Postgres was heard of. */
  private get silentMs(): number {
    return performance.now() - Math.max(this.changes.verifiedAt, this.database.readyAt);
  }

  /** All who ask meanwhile share one question: anybody may, and it takes a connection that look-ups of keys wait for. */
  private answers(): Promise<boolean> {
    this.asked ??= this.dataSource
      .query('SELECT 1')
      .then(
        () => true,
        () => false,
      )
      .finally(() => (this.asked = null));
    return Promise.race([this.asked, sleep(ASK_MS, false, { ref: false })]);
  }
}
