import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DataSource, QueryRunner } from 'typeorm';
import { PermanentDatabaseError } from './permanent-database-error.js';
import { packageRoot } from '../platform/package-root.js';

/**
 * The functions of migrations/functions, a file each. One in LANGUAGE sql comes after those that it names: Postgres looks
 * for them when it is created.
 */
export const FUNCTIONS = [
  'admin_session_id',
  'count_change',
  'count_key_change',
  'limit_emit',
  'limit_exchange',
  'limit_exchange_hot',
  'limit_fold',
  'limit_forget',
  'limit_lock_meter',
  'limit_meter_alert',
  'limit_rule_raised',
  'limit_sweep',
  'limit_take_holds',
  'limit_take_rates',
  'limit_threshold',
  'limit_window',
  'limit_windows',
  'provider_name_taken',
  'request_log_create_partition',
  'request_log_drop_partition',
  'request_log_unknown_cost',
  'webhook_emit',
] as const;

/** Copied by the build, whatever runs: a bundled file is in another folder than a compiled one. */
const FOLDER = join(packageRoot(), 'dist', 'migrations', 'functions');

export interface FunctionFile {
  name: string;
  /** Counts the changes of the file. Of two versions that run side by side, the one with the higher revision is newer. */
  revision: number;
  /** SHA-256 of the text, in hex. */
  digest: string;
  text: string;
}

/** @throws PermanentDatabaseError if a file is missing; Error if it does not begin with its revision */
export async function readFunction(name: string): Promise<FunctionFile> {
  const file = join(FOLDER, `${name}.sql`);
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new PermanentDatabaseError(
      `${file} cannot be read: this installation is not whole. Build or install it again.`,
      {
        cause: error,
      },
    );
  });
  const revision = Number(/^-- Revision (\d+)$/m.exec(text)?.[1]);
  if (!(revision > 0)) throw new Error(`migrations/functions/${name}.sql has no line "-- Revision 1"`);
  return { name, revision, digest: createHash('sha256').update(text).digest('hex'), text };
}

/**
 * The files that differ from what was applied, or from the function: it may be gone, or have been made again by a migration
 * that was reverted. A file with a lower revision than the stored one is of an older version, which leaves the newer
 * function in place. Needs every migration.
 */
export async function pendingFunctions(database: Pick<DataSource, 'query'>): Promise<FunctionFile[]> {
  const rows = await database.query<
    { name: string; revision: number; digest: string; source: string | null }[]
  >(`
    SELECT s.name, s.revision, s.digest, p.prosrc AS source
    FROM stored_function s LEFT JOIN pg_proc p ON p.proname = s.name AND pg_function_is_visible(p.oid)`);
  const stored = new Map(rows.map((row) => [row.name, row]));
  const files = await Promise.all(FUNCTIONS.map(readFunction));
  return files.filter(({ name, revision, digest, text }) => {
    const known = stored.get(name);
    if (known === undefined) return true;
    const isSame = known.digest === digest && text.includes(`$$${known.source}$$`);
    return known.revision <= revision && !isSame;
  });
}

/**
 * Applies pending files, all or none. The caller has the lock of the migrations.
 *
 * @returns names of the functions
 * @throws Error of Postgres with the name of the file
 */
export async function applyFunctions(runner: QueryRunner): Promise<string[]> {
  const pending = await pendingFunctions(runner);
  if (pending.length === 0) return [];
  await runner.manager.transaction(async (manager) => {
    for (const { name, revision, digest, text } of pending) {
      await manager.query(text).catch((error: Error) => {
        error.message = `migrations/functions/${name}.sql: ${error.message}`;
        throw error;
      });
      await manager.query(
        `INSERT INTO stored_function (name, revision, digest) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET revision = EXCLUDED.revision, digest = EXCLUDED.digest`,
        [name, revision, digest],
      );
    }
  });
  return pending.map(({ name }) => name);
}
