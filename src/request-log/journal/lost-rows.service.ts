import { access } from 'node:fs/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type pg from 'pg';
import { InjectSettings } from '../../config/config.module.js';
import { directUrl, type Settings } from '../../config/settings.js';
import { RenewedConnection } from '../../database/renewed-connection.js';
import { describeError } from '../../errors/describe-error.js';
import type { PutBack } from '../../regressions/regression.js';
import { addPutBack, type Found, isLeft, readRuns } from '../../regressions/regression-store.js';
import { Regressions } from '../../regressions/regressions.service.js';
import type { LogRow } from '../columns.js';
import { LogWriter } from '../writer/log-writer.js';
import { LostRows } from './lost-rows.js';
import { readDeadRows } from './recovery.js';
import { patience } from '../../platform/patience.js';

const QUERY_TIMEOUT = patience('a statement about lost rows', 30_000);

/** What became of the rows in journal files. */
export interface PutBackRows {
  rows: number;
  /** Of days that retention has dropped. */
  skippedRows: number;
}

/** Stores what else rows stand for that Postgres has lost. @returns how many of it */
export type BeforeRows = (rows: readonly LogRow[]) => Promise<number>;

/** Puts rows back that Postgres had acknowledged and has lost. */
@Injectable()
export class LostRowsService implements OnApplicationShutdown {
  /** Since the start: rows that were written again, those of days that retention has dropped, and damaged records. */
  readonly counts = { rows: 0, skipped: 0, corrupt: 0 };
  private readonly logger = new Logger('Journal');
  private readonly connection: RenewedConnection;
  private readonly hooks: BeforeRows[] = [];

  constructor(
    @InjectSettings() env: Settings,
    private readonly writer: LogWriter,
    private readonly regressions: Regressions,
  ) {
    const purpose = { applicationName: 'postern-put-back', queryTimeout: QUERY_TIMEOUT };
    this.connection = new RenewedConnection(directUrl(env), purpose);
  }

  /** Registers what gets the rows of these files first, those too that Postgres still has. */
  beforeRows(hook: BeforeRows): void {
    this.hooks.push(hook);
  }

  /** On a connection that is closed if it fails. */
  private async withClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
    try {
      return await work(await this.connection.open());
    } catch (error) {
      await this.connection.close();
      throw error;
    }
  }

  /** Waits until Postgres's clock is past what the readers of the log have read. @throws Error if it is not after a minute */
  cursorsPassed(signal: AbortSignal): Promise<void> {
    return this.withClient((client) => this.regressions.cursors.passed(client, signal));
  }

  /** What Postgres has of process runs that run, and of this one. */
  runs(run: string): Promise<Found> {
    return this.withClient((client) => readRuns(client, [run]));
  }

  /** Whether nothing of a run is put back by itself. @param seq what Postgres has of it */
  isLeft(run: string, seq: bigint): Promise<boolean> {
    return this.withClient((client) => isLeft(client, run, seq));
  }

  /** Adds what was put back at a start to the regression that is noted for the server, if there is one. */
  async record(counts: PutBack): Promise<void> {
    await this.withClient(async (client) => {
      const { regression } = await readRuns(client, []);
      if (regression !== null) await addPutBack(client, regression.id, counts);
    });
  }

  /**
   * Passes the rows in these files to the hooks.
   *
   * @param paths in the order in which they were written
   * @param skipped IDs of calls that are under way
   * @returns what they have put back
   */
  async prepare(paths: readonly string[], skipped: ReadonlySet<string>): Promise<number> {
    let count = 0;
    if (this.hooks.length === 0) return count;
    for await (const batch of readDeadRows(paths)) {
      const rows = batch.filter(({ id }) => !skipped.has(id));
      for (const hook of this.hooks) count += await hook(rows);
    }
    return count;
  }

  /**
   * Writes the rows in these files that Postgres has lost, with the statement that writes all rows: what they are charged
   * was lost with them, and is charged with those that were not there.
   *
   * @param paths in the order in which they were written
   * @param skipped IDs of calls that are under way, or whose rows still wait for the writer
   * @returns null if the writer was stopped first
   * @throws errors of Postgres and of the disk; doing it again changes nothing that is there
   */
  async putBack(paths: readonly string[], skipped: ReadonlySet<string>): Promise<PutBackRows | null> {
    const result: PutBackRows = { rows: 0, skippedRows: 0 };
    let corrupt = 0;
    await this.mustExist(paths);
    const search = await this.withClient((client) => LostRows.in(client));
    for await (const batch of readDeadRows(paths, (count) => (corrupt += count))) {
      const rows = batch.filter(({ id }) => !skipped.has(id));
      const { lost, dropped } = await this.withClient((client) => search.of(client, rows));
      if (lost.length > 0 && !(await this.writer.persist(lost, false))) return null;
      result.rows += lost.length;
      result.skippedRows += dropped;
      this.counts.rows += lost.length;
    }
    await this.connection.close();
    this.counts.skipped += result.skippedRows;
    this.counts.corrupt += corrupt;
    if (corrupt > 0) this.logger.warn(`${corrupt} damaged records of the journal were skipped.`);
    return result;
  }

  /** What somebody has removed by hand is reported: reading a file that is gone gives no rows. */
  private async mustExist(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      await access(path).catch((error: unknown) => {
        this.logger.error(`Rows that Postgres has lost may be gone: ${describeError(error)}`);
      });
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.connection.end();
  }
}
