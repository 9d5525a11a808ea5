import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { describeFault, unhealable } from './database-fault.js';
import { isMigrationPending, migrate } from './migrate.js';

const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5_000;

/** Brings Postgres into reach at start: connects, migrates, then runs what the rooms asked for once it is ready. */
@Injectable()
export class DatabaseService implements OnModuleDestroy {
  private readonly logger = new Logger('Database');
  private readonly readyHooks: (() => Promise<void>)[] = [];
  private retryTimer: NodeJS.Timeout | undefined;
  private stopped = false;
  private why = 'not connected yet';
  /** Postgres answers, and somebody has to run the migrations: MIGRATE=off. */
  migrationsPending = false;
  /** When it was found migrated (monotonic ms); -Infinity: never yet. */
  readyAt = -Infinity;

  /** Called when a later attempt meets a fault that no waiting mends. */
  onUnhealable: (fault: Error) => void = () => {};

  constructor(
    private readonly dataSource: DataSource,
    @InjectEnv() private readonly env: Settings,
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
   * Makes the first attempt; when Postgres is away it goes on trying behind.
   *
   * @throws DatabaseFault for what cannot heal
   */
  async start(): Promise<void> {
    if (await this.attempt()) return;
    this.logger.warn(`Postgres is not ready: ${this.why}. Trying again until it is.`);
    this.retryLater(FIRST_RETRY_MS);
  }

  onModuleDestroy(): void {
    this.stopped = true;
    clearTimeout(this.retryTimer);
  }

  private retryLater(delayMs: number): void {
    this.retryTimer = setTimeout(() => {
      this.attempt().then(
        (ready) => {
          if (ready) this.logger.log('Postgres is ready.');
          else if (!this.stopped) this.retryLater(Math.min(delayMs * 2, LONGEST_RETRY_MS));
        },
        (fault: Error) => this.onUnhealable(fault),
      );
    }, delayMs);
  }

  private async attempt(): Promise<boolean> {
    try {
      this.migrationsPending = false;
      if (this.env.migrate) {
        const ran = await migrate(this.env.databaseUrl);
        if (ran.length > 0) this.logger.log(`Migrated the database: ${ran.join(', ')}`);
      } else if (await isMigrationPending(this.env.databaseUrl)) {
        this.migrationsPending = true;
        this.why = 'migrations are pending and MIGRATE=off; run "postern migrate"';
        return false;
      }
      if (!this.dataSource.isInitialized && !this.stopped) await this.dataSource.initialize();
      for (const hook of this.readyHooks) await hook();
      this.why = '';
      this.readyAt = performance.now();
      return true;
    } catch (error) {
      const fault = unhealable(error);
      if (fault) throw fault;
      this.why = describeFault(error);
      return false;
    }
  }
}
