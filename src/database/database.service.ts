import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { cliCommand } from '../platform/cli-command.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { withTimeout } from '../platform/with-timeout.js';
import { unhealable } from './database-fault.js';
import { describeError } from '../errors/describe-error.js';
import { isMigrationPending, migrate } from './migrate.js';

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5_000;

/** Brings Postgres into reach at start: connects, migrates, then runs what the rooms asked for once it is ready. */
@Injectable()
export class DatabaseService implements OnModuleDestroy {
  private readonly logger = new Logger('Database');
  private readonly readyHooks: (() => Promise<void>)[] = [];
  private retryTimer: NodeJS.Timeout | undefined;
  private readonly stopping = new AbortController();
  private why = 'it has not answered yet, or another process is migrating it';
  /** Postgres answers, and somebody has to run the migrations: MIGRATE=off. */
  migrationsPending = false;
  /** When it was found migrated (monotonic ms); -Infinity: never yet. */
  readyAt = -Infinity;

  /** Called when a later attempt meets a fault that no waiting mends. */
  onUnhealable: (fault: Error) => void = () => {};

  constructor(
    private readonly dataSource: DataSource,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** null when migrated and in use, else why not, in words for an operator. */
  get notReady(): string | null {
    return this.why === '' ? null : this.why;
  }

  /** Registers work for the moment the schema is up to date; it runs again on the next attempt when it throws. */
  whenReady(hook: () => Promise<void>): void {
    this.readyHooks.push(hook);
  }

  /**
   * Makes the first attempt; when Postgres is away it goes on trying behind, and so does an attempt that takes longer
   * than this: another replica may hold the migrations' lock for minutes.
   *
   * @throws DatabaseFault for what cannot heal
   */
  async start(patienceMs: number): Promise<void> {
    const first = this.attempt();
    const settled = await withTimeout(patienceMs, first);
    if (settled && (await first)) return;
    this.logger.warn(`Postgres is not ready: ${this.why}. Trying again until it is.`);
    if (settled) this.retryLater(FIRST_RETRY_MS);
    else this.goOnAfter(first, FIRST_RETRY_MS);
  }

  onModuleDestroy(): void {
    this.stopping.abort();
    clearTimeout(this.retryTimer);
  }

  private retryLater(delayMs: number): void {
    this.retryTimer = setTimeout(
      () => this.goOnAfter(this.attempt(), Math.min(delayMs * 2, LONGEST_RETRY_MS)),
      delayMs,
    );
  }

  private goOnAfter(attempt: Promise<boolean>, delayMs: number): void {
    attempt.then(
      (ready) => {
        if (ready) this.logger.log('Postgres is ready.');
        else if (!this.stopping.signal.aborted) this.retryLater(delayMs);
      },
      (fault: Error) => {
        if (!this.stopping.signal.aborted) this.onUnhealable(fault);
      },
    );
  }

  private async attempt(): Promise<boolean> {
    const { signal } = this.stopping;
    try {
      this.migrationsPending = false;
      if (this.env.migrate) {
        const ran = await migrate(this.env.databaseUrl, signal);
        if (ran.length > 0) this.logger.log(`Migrated the database: ${ran.join(', ')}`);
      } else if (await isMigrationPending(this.env.databaseUrl)) {
        this.migrationsPending = true;
        this.why = `migrations are pending and MIGRATE=off; run "${cliCommand('migrate')}"`;
        return false;
      }
      signal.throwIfAborted();
      if (!this.dataSource.isInitialized) await this.dataSource.initialize();
      for (const hook of this.readyHooks) {
        signal.throwIfAborted();
        await hook();
      }
      this.why = '';
      this.readyAt = performance.now();
      return true;
    } catch (error) {
      const fault = unhealable(error);
      if (fault) throw fault;
      this.why = describeError(error);
      return false;
    }
  }
}
