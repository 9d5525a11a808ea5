import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { InjectSettings } from '../config/config.module.js';
import { directUrl, type Settings } from '../config/settings.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import { ADVISORY_LOCKS } from './advisory-locks.js';
import { clientOptions } from './data-source-options.js';
import { GatewayClient } from './gateway-client.js';

const QUERY_TIMEOUT = patience('the lock of a job', 5_000);
/** Postgres ends the session of a process that is frozen, and does not close its connection, after this time. */
const SILENCE_MS = 30_000;
const SHOW_LIFE_MS = 10_000;
const END_SILENT_SESSION = `SET idle_session_timeout = ${SILENCE_MS}`;

/** A session that has the lock already gets it again. */
const LOCK = `SELECT pg_try_advisory_lock(${ADVISORY_LOCKS.jobs}, hashtext($1)) AS locked`;

/** Runs jobs in one process of all replicas and workers. */
@Injectable()
export class ReplicaJobs implements OnApplicationShutdown {
  private readonly running = new Map<string, Promise<unknown>>();
  /** Holds the locks of this process. Opened with the first job, and again after it broke. */
  private session: Promise<GatewayClient> | null = null;
  /** Settles when the session has been asked everything: pg warns of queries that wait for others, and will reject them. */
  private asked: Promise<unknown> = Promise.resolve();

  /** @internal */
  constructor(@InjectSettings() private readonly env: Settings) {}

  /**
   * Runs the work if this process gets the lock of the job: the advisory lock `(7061008, hashtext(name))` of a session in
   * Postgres. The process keeps the lock, so that another one whose clock is behind does not run the job a second time.
   * Postgres releases it when the process or its connection ends, or the process has been frozen for half a minute, and the
   * process that asks next gets it. A frozen process that continues then ends work that another one may have begun.
   *
   * @param name of the job; the same in every replica
   * @returns whether it ran; false also while an earlier run in this process has not ended
   * @throws what the work throws, and errors of the database
   */
  async onlyOneReplica(name: string, work: () => unknown): Promise<boolean> {
    if (this.running.has(name)) return false;
    const run = this.runIfLocked(name, work);
    this.running.set(name, run);
    try {
      return await run;
    } finally {
      this.running.delete(name);
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(CLOSE_TIMEOUT.ms, Promise.allSettled(this.running.values()));
    const client = await this.session?.catch(() => null);
    if (client) await withTimeout(CLOSE_TIMEOUT.ms, client.end());
  }

  private async runIfLocked(name: string, work: () => unknown): Promise<boolean> {
    const client = await (this.session ?? this.connect());
    const { rows } = await this.ask<{ locked: boolean }>(client, LOCK, [name]);
    if (!rows[0]!.locked) return false;
    await work();
    return true;
  }

  private ask<Row extends QueryResultRow>(client: GatewayClient, text: string, values: string[] = []) {
    const answer = this.asked.then(() => client.query<Row>(text, values));
    this.asked = answer.catch(() => {});
    return answer;
  }

  private connect(): Promise<GatewayClient> {
    const purpose = { applicationName: 'postern-jobs', queryTimeout: QUERY_TIMEOUT };
    const client = new GatewayClient(clientOptions(directUrl(this.env), purpose));
    const session = this.begin(client);
    const forget = () => {
      if (this.session === session) this.session = null;
    };
    client.once('end', forget);
    session.catch(forget);
    return (this.session = session);
  }

  private async begin(client: GatewayClient): Promise<GatewayClient> {
    await client.connect();
    await client.query(END_SILENT_SESSION);
    // If it fails, the session has ended.
    const life = setInterval(() => this.ask(client, 'SELECT').catch(() => {}), SHOW_LIFE_MS).unref();
    client.once('end', () => clearInterval(life));
    return client;
  }
}
