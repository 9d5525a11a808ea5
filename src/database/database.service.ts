import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { cliCommand } from '../platform/cli-command.js';
import { InjectSettings } from '../config/config.module.js';
import { featuresIn } from '../config/features.js';
import { directUrl, type Settings } from '../config/settings.js';
import { withTimeout } from '../platform/patience.js';
import { permanentError, PermanentDatabaseError } from './permanent-database-error.js';
import { checkConnections } from './check-connections.js';
import { describeError } from '../errors/describe-error.js';
import { isMigrationPending, migrate } from './migrate.js';

const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 5_000;
/** Migrations of a new database, whose names help nobody. An upgrade names its own. */
const MANY = 20;

/** Connects to Postgres at start and migrates it, then runs the hooks of the modules. Retries until it succeeds. */
@Injectable()
export class DatabaseService implements OnModuleDestroy {
  private readonly logger = new Logger('Database');
  private readonly readyHooks: (() => Promise<void>)[] = [];
  private retryTimer: NodeJS.Timeout | undefined;
  private readonly stopping = new AbortController();
  private onPermanentError!: (error: Error) => void;
  private why = 'it has not responded yet, or another process is migrating it';
  /**
   * Postgres is reachable, but MIGRATE=off and migrations are pending.
   *
   * @internal
   */
  migrationsPending = false;
  /**
   * When the schema was found up to date (monotonic ms); -Infinity: never yet.
   *
   * @internal
   */
  readyAt = -Infinity;

  /** @internal */
  constructor(
    private readonly dataSource: DataSource,
    @InjectSettings() private readonly env: Settings,
    private readonly modules: ModulesContainer,
  ) {}

  /**
   * Null if Postgres is ready, else the reason, for an operator.
   *
   * @internal
   */
  get notReady(): string | null {
    return this.why === '' ? null : this.why;
  }

  /** Registers a hook that runs once the schema is up to date. If it throws, it runs again on the next attempt. */
  whenReady(hook: () => Promise<void>): void {
    this.readyHooks.push(hook);
  }

  /**
   * Makes the first attempt. If it fails or takes longer than `timeoutMs`, the attempts continue in the background:
   * another replica may hold the migration lock for minutes.
   *
   * @param onPermanentError called if one of those fails with an error that a retry cannot fix
   * @throws PermanentDatabaseError for an error that a retry cannot fix
   *
   * @internal
   */
  async start(
    timeoutMs: number,
    onPermanentError = (error: Error) => this.logger.fatal(describeError(error)),
  ): Promise<void> {
    this.onPermanentError = onPermanentError;
    const first = this.attempt();
    const settled = await withTimeout(timeoutMs, first);
    if (settled && (await first)) return;
    this.logger.warn(`Postgres is not ready: ${this.why}. Trying again until it is.`);
    if (settled) this.retryLater(FIRST_RETRY_MS);
    else this.retryAfter(first, FIRST_RETRY_MS);
  }

  /**
   * Makes one attempt, for a command: connects and migrates without the hooks of the modules, which are for a gateway.
   *
   * @throws Error
   *
   * @internal
   */
  async startOnce(): Promise<void> {
    await this.prepare();
    if (this.migrationsPending) throw new PermanentDatabaseError(`${this.why} first`);
    this.why = '';
  }

  onModuleDestroy(): void {
    this.stopping.abort();
    clearTimeout(this.retryTimer);
  }

  private retryLater(delayMs: number): void {
    this.retryTimer = setTimeout(
      () => this.retryAfter(this.attempt(), Math.min(delayMs * 2, MAX_RETRY_MS)),
      delayMs,
    );
  }

  private retryAfter(attempt: Promise<boolean>, delayMs: number): void {
    attempt.then(
      (ready) => {
        if (ready) this.logger.log('Postgres is ready.');
        else if (!this.stopping.signal.aborted) this.retryLater(delayMs);
      },
      (error: Error) => {
        if (!this.stopping.signal.aborted) this.onPermanentError(error);
      },
    );
  }

  /** Migrates, or looks whether that is needed, and connects. */
  private async prepare(): Promise<void> {
    const { signal } = this.stopping;
    this.migrationsPending = false;
    const url = directUrl(this.env);
    await checkConnections(this.env);
    const features = featuresIn(this.modules);
    if (this.env.migrate) {
      const ran = await migrate(url, features, signal);
      if (ran.length > MANY) this.logger.log(`Migrated the database: ${ran.length} steps`);
      else if (ran.length > 0) this.logger.log(`Migrated the database: ${ran.join(', ')}`);
    } else if (await isMigrationPending(url, features)) {
      this.migrationsPending = true;
      this.why = `migrations are pending and MIGRATE=off; run "${cliCommand('migrate')}"`;
      return;
    }
    signal.throwIfAborted();
    if (!this.dataSource.isInitialized) await this.dataSource.initialize();
  }

  private async attempt(): Promise<boolean> {
    const { signal } = this.stopping;
    try {
      await this.prepare();
      if (this.migrationsPending) return false;
      for (const hook of this.readyHooks) {
        signal.throwIfAborted();
        await hook();
      }
      this.why = '';
      this.readyAt = performance.now();
      return true;
    } catch (error) {
      const permanent = permanentError(error);
      if (permanent) throw permanent;
      this.why = describeError(error);
      return false;
    }
  }
}
