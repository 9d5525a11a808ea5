import { createHmac } from 'node:crypto';
import { Inject, Injectable, Logger, type OnApplicationShutdown, Optional } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../../config/config.module.js';
import { directUrl, required, type Settings } from '../../config/settings.js';
import { ChangeFeed } from '../../database/change-feed.js';
import { DatabaseService } from '../../database/database.service.js';
import { describeError } from '../../errors/describe-error.js';
import { Regressions } from '../../regressions/regressions.service.js';
import { Journal } from '../../request-log/journal/journal.js';
import { runOf } from '../../request-log/journal/run-directories.js';
import { Ledger } from './ledger.js';
import { RuleCache } from './rule-cache.js';
import { forgetHolds } from './settlement.js';

/** After this and KEY_CACHE_STALE_MS without an exchange, what a process holds is void. */
const VOID_MS = 15 * 60_000;
const SWEEP_MS = 10 * 60_000;
/** Names whose hashes are kept. */
const MAX_KNOWN = 1_000;
const MAX_KNOWN_LENGTH = 256;

const VOID_PROCESSES = `
  SELECT id FROM limit_process WHERE seen_at < clock_timestamp() - make_interval(secs => $1)`;

const SESSIONS_AT_ONCE = 5_000;
/** What nobody has used for 10 days; what was never charged needs no meter. */
const SWEEP_SESSIONS = `
  DELETE FROM limit_meter WHERE (rule_id, subject, window_start) IN (
    SELECT m.rule_id, m.subject, m.window_start FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
    WHERE r.period = 'session' AND m.held = 0
      AND (m.spent = 0 OR m.admitted_at < clock_timestamp() - interval '10 days')
      AND NOT EXISTS (SELECT FROM limit_spent s WHERE s.rule_id = m.rule_id AND s.subject = m.subject)
    ORDER BY r.rank, m.rule_id, m.subject LIMIT ${SESSIONS_AT_ONCE} FOR UPDATE OF m SKIP LOCKED)`;

/** The ledger of this process, connected with the log writer and the change feed. */
@Injectable()
export class LedgerService extends Ledger implements OnApplicationShutdown {
  private readonly logger = new Logger('Limits');
  private readonly subjectKey: Buffer;
  private readonly sessionKey: Buffer;
  private readonly endUsers = new Map<string, string>();
  private readonly sessions = new Map<string, string>();
  private readonly voidMs: number;
  private isStopping = false;

  constructor(
    private readonly dataSource: DataSource,
    rules: RuleCache,
    feed: ChangeFeed,
    database: DatabaseService,
    journal: Journal,
    @InjectSettings() env: Settings,
    @Optional() @Inject(Regressions) regressions?: Regressions,
  ) {
    const voidMs = env.keyCacheStaleMs + VOID_MS;
    super(rules, {
      databaseUrl: directUrl(env),
      process: runOf(journal.runDirectory),
      voidMs,
      staleMs: env.keyCacheStaleMs,
      withoutDatabase: env.limitsWithoutDatabase,
      ...(regressions !== undefined && { regressions }),
    });
    this.voidMs = voidMs;
    const keyFor = (use: string) => createHmac('sha256', required(env, 'masterKey')).update(use).digest();
    this.subjectKey = keyFor('postern end users');
    this.sessionKey = keyFor('postern sessions');
    feed.listen('postern_limit_recall', (payload) => this.recall(payload));
    // Charges are back with their rows by then.
    regressions?.onRegression('claims', {
      putBack: () => {
        this.exchangeAll();
        return Promise.resolve({});
      },
    });
    database.whenReady(() => {
      this.start();
      return Promise.resolve();
    });
  }

  /** The subject of an end user. Calls without one share one subject. */
  subjectOf(endUser: string | null): string {
    if (endUser === null) return '-';
    return this.hashed(this.subjectKey, endUser, this.endUsers);
  }

  /** The subject of a session. */
  subjectOfSession(session: string): string {
    return this.hashed(this.sessionKey, session, this.sessions);
  }

  /** A hash takes longer than a look-up, and most calls come of the same few. */
  private hashed(key: Buffer, name: string, known: Map<string, string>): string {
    let subject = known.get(name);
    if (subject === undefined) {
      subject = createHmac('sha256', key).update(name).digest('base64url').slice(0, 22);
      if (known.size >= MAX_KNOWN) known.clear();
      // A header may have 16 KiB.
      if (name.length <= MAX_KNOWN_LENGTH) known.set(name, subject);
    }
    return subject;
  }

  /** Removes what dead processes and past periods have left. */
  @Interval(SWEEP_MS)
  async sweep(): Promise<void> {
    if (this.isStopping || this.exchange.confirmedAt === -Infinity) return;
    try {
      const rows = await this.dataSource.query<{ id: string }[]>(VOID_PROCESSES, [this.voidMs / 1_000]);
      // Each in a transaction of its own, so that meters are locked in one order.
      for (const { id } of rows) await forgetHolds(this.dataSource, id);
      await this.dataSource.query('SELECT limit_sweep()');
      while ((await this.dataSource.query<[unknown, number]>(SWEEP_SESSIONS))[1] === SESSIONS_AT_ONCE);
    } catch (error) {
      this.logger.warn(`Old holds could not be removed, trying again later: ${describeError(error)}`);
    }
  }

  onApplicationShutdown(): void {
    // The log writer stops the ledger after its last rows.
    this.isStopping = true;
  }
}
