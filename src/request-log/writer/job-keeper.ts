import type { ClientBase } from 'pg';
import type { SeenJob } from '../../bodies/usage/token-usage.js';
import type { LogRow } from '../columns.js';

/** The provider of the JobKeeper, if the gateway has one. The module of jobs provides it. */
export const JOB_KEEPER = Symbol('JobKeeper');

/** Follows the jobs that calls create at providers: batches, background responses and videos. */
export interface JobKeeper {
  /**
   * A response of a provider described this job. Never throws.
   *
   * @returns what the journal and the writer get of it; undefined unless the call created the job, and it goes on
   */
  seen(row: Readonly<LogRow>, job: SeenJob): string | undefined;
  /**
   * Stores the jobs of rows that are in Postgres; doing it again changes nothing.
   *
   * @throws errors that the next attempt may not meet
   */
  add(client: ClientBase, rows: readonly LogRow[]): Promise<void>;
}
