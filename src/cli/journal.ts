import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClientBase } from 'pg';
import { DataSource } from 'typeorm';
import { putBackAbandoned, recordsOf } from '../idempotency/lost-records.js';
import { addJobs } from '../jobs/stored-jobs.js';
import { forgetHolds, settlement } from '../limits/ledger/settlement.js';
import { DataDirError, openDataDir } from '../platform/data-dir.js';
import { BatchPricer } from '../pricing/batch-pricer.js';
import { PriceResolver } from '../pricing/price-resolver.js';
import {
  allFiles,
  keptFiles,
  logFiles,
  runDirectories,
  runOf,
} from '../request-log/journal/run-directories.js';
import type { LogRow } from '../request-log/columns.js';
import { FutureRows } from '../request-log/writer/future-rows.js';
import { insertCreatingDays, settlingWith } from '../request-log/writer/insert-rows.js';
import { LostRows } from '../request-log/journal/lost-rows.js';
import { readDeadRows } from '../request-log/journal/recovery.js';
import { withLocalApp } from './local-app.js';

/** Contents of the journal directory of one process run. */
export interface RunCounts {
  folder: string;
  bytes: number;
  rows: number;
  /** Rows of calls that the gateway did not see end. */
  interrupted: number;
  damaged_lines: number;
  /** Finished files that are kept: Postgres has acknowledged their rows. */
  kept_files: number;
  kept_bytes: number;
  /** With --kept: those of the rows that Postgres did not have. */
  put_back: number;
}

export interface DrainOptions {
  /** Puts back rows of kept files that Postgres does not have, and removes the files. */
  readonly kept?: boolean;
}

/** Counts the rows in the journal of a DATA_DIR. */
export function countJournal(dir: string): Promise<RunCounts[]> {
  return withJournal(dir, async (root) => {
    const runs: RunCounts[] = [];
    for (const folder of await runDirectories(root))
      runs.push(await readRun(folder, () => Promise.resolve()));
    return runs;
  });
}

/** Writes the rows in the journal of a DATA_DIR to Postgres and removes them from it. */
export function drainJournal(dir: string, { kept = false }: DrainOptions = {}): Promise<RunCounts[]> {
  return withJournal(dir, (root) =>
    withLocalApp(async (app) => {
      const dataSource = app.get(DataSource);
      const resolver = app.get(PriceResolver);
      const pricer = app.get(BatchPricer);
      const runs: RunCounts[] = [];
      for (const folder of await runDirectories(root)) {
        const store = async (rows: readonly LogRow[]) => {
          // Unlike a gateway, a command has the time to wait for the catalog.
          await resolver.load(
            rows.flatMap(({ provider, model }) => (model === null ? [] : { provider, model })),
          );
          await pricer.price(rows);
          await write(dataSource, rows);
        };
        const counts = kept ? await putBack(dataSource, folder, store) : await readRun(folder, store);
        await forgetHolds(dataSource, runOf(folder));
        if (kept || counts.kept_files === 0) await rm(folder, { recursive: true });
        else for (const file of await logFiles(folder)) await rm(file);
        runs.push(counts);
      }
      return runs;
    }),
  );
}

/** Runs `work` on the journal of a DATA_DIR that no gateway is using. */
async function withJournal<T>(dir: string, work: (root: string) => Promise<T>): Promise<T> {
  const root = join(dir, 'journal');
  await stat(root).catch((error: unknown) => {
    throw new DataDirError(`there is no journal in ${dir}; give the DATA_DIR of a gateway`, { cause: error });
  });
  const dataDir = await openDataDir(dir);
  await dataDir.hold();
  try {
    return await work(root);
  } finally {
    dataDir.release();
  }
}

/** @throws DataDirError for rows that a gateway would keep back; the other rows are written */
async function write(dataSource: DataSource, rows: readonly LogRow[]): Promise<void> {
  const runner = dataSource.createQueryRunner();
  try {
    const client = (await runner.connect()) as ClientBase;
    const latest = await new FutureRows().latestStart(
      client,
      rows.map((row) => ({ row })),
    );
    await insertCreatingDays(
      client,
      rows.filter(({ started_at }) => started_at <= latest),
      settlingWith({ settlement }),
    );
    await addJobs(
      client,
      rows.filter(({ started_at }) => started_at <= latest),
    );
    const future = rows.find(({ started_at }) => started_at > latest);
    if (future !== undefined) {
      throw new DataDirError(
        `row ${future.id} starts at ${future.started_at}, more than 2 days ahead of the database's clock; the journal ` +
          'is not removed: correct that clock, or drain again on that day',
      );
    }
  } finally {
    await runner.release();
  }
}

/**
 * Writes the rows of a run that Postgres does not have, those of its kept files included. A call may have begun in a kept
 * file and ended in another, or the other way round.
 */
async function putBack(
  dataSource: DataSource,
  folder: string,
  store: (rows: readonly LogRow[]) => Promise<void>,
): Promise<RunCounts> {
  const runner = dataSource.createQueryRunner();
  try {
    const client = (await runner.connect()) as ClientBase;
    const search = await LostRows.in(client);
    let count = 0;
    const counts = await readRun(
      folder,
      async (rows) => {
        const records = recordsOf(rows);
        if (records.length > 0) await client.query(putBackAbandoned(records));
        const { lost } = await search.of(client, rows);
        if (lost.length > 0) await store(lost);
        count += lost.length;
      },
      await allFiles(folder),
    );
    return { ...counts, put_back: count };
  } finally {
    await runner.release();
  }
}

async function readRun(
  folder: string,
  write: (rows: readonly LogRow[]) => Promise<void>,
  paths?: readonly string[],
): Promise<RunCounts> {
  const counts: RunCounts = {
    folder,
    bytes: 0,
    rows: 0,
    interrupted: 0,
    damaged_lines: 0,
    kept_files: 0,
    kept_bytes: 0,
    put_back: 0,
  };
  for (const { path } of await keptFiles(folder)) {
    counts.kept_files++;
    counts.kept_bytes += (await stat(path)).size;
  }
  const files = await logFiles(folder);
  for (const file of files) counts.bytes += (await stat(file)).size;
  for await (const rows of readDeadRows(paths ?? files, (count) => (counts.damaged_lines += count))) {
    await write(rows);
    counts.rows += rows.length;
    counts.interrupted += rows.filter((row) => row.outcome === 'interrupted').length;
  }
  return counts;
}
