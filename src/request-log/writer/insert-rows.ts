import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { describeError } from '../../errors/describe-error.js';
import { finalizeCharge } from '../charges.js';
import { startOf } from '../column-domains.js';
import { CHARGE_COLUMNS } from '../charge-columns.js';
import { LOGGED_COLUMNS, type LogRow } from '../columns.js';
import { createPartitions } from '../partitions.js';
import type { ChargeKeeper } from './charge-keeper.js';
import type { JobKeeper } from './job-keeper.js';
import {
  counted,
  type CountedResult,
  countedResult,
  isSameServer,
  type RunCounter,
  type RunStamp,
} from '../../regressions/run-counter.js';

const logger = new Logger('RequestLog');

/** SQLSTATE of a row that is there already. */
const UNIQUE = '23505';
/** SQLSTATE of a row for which there is no partition; `request_log` has no CHECK constraint that could raise it. */
const NO_PARTITION = '23514';

/**
 * SQLSTATE classes of errors that the settlement may cause: its data, or its tables. Others are for the next attempt. So is
 * 42P05, that a named statement exists: something shares the session, such as a pooler that was set to transaction mode.
 */
const SETTLEMENT_ERROR = /^(2[123]|42(?!P05)|P0)...$/;

type Name = keyof LogRow;

interface Statement {
  readonly name: string;
  readonly columns: readonly Name[];
  readonly text: string;
}

const LISTED = LOGGED_COLUMNS.map(({ name }) => name);
const UNCHARGED = LISTED.filter((name) => !(name in CHARGE_COLUMNS));
/** Only an update sets it. */
const UPDATED_AT = 'repaired_at';
/** A charge is written once: it is already part of what is spent. */
const UPDATED = UNCHARGED.filter((name) => name !== 'started_at' && name !== 'id');

/** Writing a row again changes nothing, except that a wrong `interrupted` is corrected. */
const CORRECT = `
  ON CONFLICT (started_at, id) DO UPDATE SET recorded_at = EXCLUDED.recorded_at, ${UPDATED_AT} = EXCLUDED.recorded_at, ${UPDATED.map((name) => `${name} = EXCLUDED.${name}`).join(', ')}
  WHERE request_log.outcome = 'interrupted' AND EXCLUDED.outcome <> 'interrupted'`;

/** @param condition for all rows */
function insertInto(columns: readonly Name[], areNew: boolean, condition = 'true'): string {
  const typeOf = (name: Name) => LOGGED_COLUMNS.find((column) => column.name === name)!.type;
  // unnest() would take an array of arrays apart.
  const isList = (name: Name) => typeOf(name) === 'bigint[]';
  const types = columns.map((name, i) => `$${i + 1}::${isList(name) ? 'text' : typeOf(name)}[]`);
  const values = columns.map((name) => (isList(name) ? `${name}::bigint[]` : name));
  return `
  INSERT INTO request_log (${columns.join(', ')})
  SELECT ${values.join(', ')} FROM unnest(${types.join(', ')}) AS new (${columns.join(', ')})
  WHERE ${condition}${areNew ? '' : CORRECT}`;
}

/** A statement for rows of which none can be there already, and one for any. */
interface Statements {
  readonly ofNew: Statement;
  readonly ofAny: Statement;
  /** The same, counted for a process run: the values of the stamp come last. On another server, nothing is inserted. */
  readonly countedNew: Statement;
  readonly countedAny: Statement;
}

/** What a counted statement has in its WITH, and what it returns. */
interface Counting {
  readonly query: string;
  readonly result: string;
}

function statements(
  name: string,
  columns: readonly Name[],
  text: (insert: string, counting: Counting | null) => string,
): Statements {
  const first = columns.length + 1;
  const counting = { query: `counted AS (${counted(first)})`, result: `SELECT ${countedResult(first)}` };
  const plain = (areNew: boolean) => text(insertInto(columns, areNew), null);
  const withCount = (areNew: boolean) => text(insertInto(columns, areNew, isSameServer(first)), counting);
  return {
    ofNew: { name: `${name}_new`, columns, text: plain(true) },
    ofAny: { name, columns, text: plain(false) },
    countedNew: { name: `${name}_new_counted`, columns, text: withCount(true) },
    countedAny: { name: `${name}_counted`, columns, text: withCount(false) },
  };
}

/**
 * The statements that write request-log rows: named, parsed once per connection, with one array per column. In batches of
 * 1,000 they take 13 µs of the server and 4 µs of this process for a row, where json_to_recordset takes 19 and 3 (PostgreSQL
 * 18, all indexes in place). Without ON CONFLICT, Postgres searches the primary key once less for each row, and confirms no
 * row: 10 to 25 % less.
 */
const PLAIN = statements('insert_request_log', UNCHARGED, (insert, counting) =>
  counting === null ? insert : `WITH ${counting.query}, written AS (${insert}) ${counting.result}`,
);
const COUNT_ONLY = `WITH counted AS (${counted(1)}) SELECT ${countedResult(1)}`;

const CHARGED = ['id, key_id, team_id, started_at', ...Object.keys(CHARGE_COLUMNS)].join(', ');
/** The same for a batch in which a row has a charge. A row that was there before has been updated, or is not returned. */
const written = (insert: string) =>
  `written AS (${insert} RETURNING ${CHARGED}, ${UPDATED_AT} AS updated_at)`;
const NEW = 'SELECT * FROM written WHERE updated_at IS NULL';
const CHARGED_ONLY = statements('insert_charged_request_log', LISTED, (insert, counting) =>
  counting === null
    ? `WITH ${written(insert)} SELECT id, started_at FROM written WHERE updated_at IS NULL`
    : `WITH ${counting.query}, ${written(insert)} ${counting.result}`,
);

/** The statements that settle charges. */
export interface Settling {
  /** Inserts rows and settles those that were not there before. Rows without a charge settle nothing. */
  readonly insert: Statements;
  /** Settles a row of the log: its start and its ID. */
  readonly settleOne: string;
}

export function settlingWith({ settlement }: Pick<ChargeKeeper, 'settlement'>): Settling {
  return {
    insert: statements('insert_and_settle_request_log', LISTED, (insert, counting) =>
      counting === null
        ? settlement(NEW, written(insert))
        : settlement(NEW, `${counting.query}, ${written(insert)}`, counting.result),
    ),
    settleOne: settlement('SELECT * FROM request_log WHERE started_at = $1 AND id = $2'),
  };
}

function queryOf({ name, columns, text }: Statement, rows: readonly LogRow[], stamp: readonly string[] = []) {
  return { name, text, values: [...columns.map((column) => arrayLiteral(rows, column)), ...stamp] };
}

/**
 * The statement for these rows. It is prepared with a settlement only if a budget applies to one of them.
 *
 * @param settling null: this process keeps no budgets. Charges, which only a journal of another one can have, stay in their
 *   rows, and that is logged as an error
 * @param areNew true: fails with SQLSTATE 23505 if one of the rows is there already
 * @param stamp the values that count it for a process run; absent: it is not counted
 */
export function insertRows(
  rows: readonly LogRow[],
  settling: Settling | null = null,
  areNew = false,
  stamp?: readonly string[],
): { name: string; text: string; values: string[] } {
  const which = stamp === undefined ? (areNew ? 'ofNew' : 'ofAny') : areNew ? 'countedNew' : 'countedAny';
  let charged = 0;
  for (const row of rows) if (finalizeCharge(row)) charged++;
  if (charged === 0) return queryOf(PLAIN[which], rows, stamp);
  if (settling !== null) return queryOf(settling.insert[which], rows, stamp);
  logger.error(
    `${charged} rows with charges are written without settling them: no module keeps budgets in this process. Import LimitsModule.`,
  );
  return queryOf(CHARGED_ONLY[which], rows, stamp);
}

/**
 * Inserts rows and settles their charges. A day that has no partition gets one.
 *
 * @param areNew true: none should be there already. If one is, because the result of an earlier attempt never came, they
 *   are written as any are
 * @param runs counts the statement for this process run; null: it is not counted
 * @returns the seq that acknowledges the rows; null if they are not counted
 * @throws Error if Postgres is another server than the one that this process has compared itself with
 */
export async function insertCreatingDays(
  client: ClientBase,
  rows: readonly LogRow[],
  settling: Settling | null = null,
  areNew = false,
  runs: RunCounter | null = null,
): Promise<bigint | null> {
  try {
    return await insertOrSettleApart(client, rows, settling, areNew, runs);
  } catch (error) {
    if ((error as { code?: string }).code !== NO_PARTITION) throw error;
    await createPartitions(
      client,
      rows.map(({ id }) => startOf(id)),
    );
    return insertOrSettleApart(client, rows, settling, areNew, runs);
  }
}

/** A row is never lost for its charge: what cannot be settled with the others is settled alone, and reported. */
async function insertOrSettleApart(
  client: ClientBase,
  rows: readonly LogRow[],
  settling: Settling | null,
  areNew: boolean,
  runs: RunCounter | null,
): Promise<bigint | null> {
  const stamp = runs === null ? null : runs.stamp();
  const query = insertRows(rows, settling, areNew, stamp === null ? undefined : runs!.values(stamp));
  try {
    const result = await client.query<CountedResult>(query);
    return stamp === null ? null : runs!.acknowledge(stamp, result.rows[0]!);
  } catch (error) {
    const { code = '' } = error as { code?: string };
    if (areNew && code === UNIQUE) return insertOrSettleApart(client, rows, settling, false, runs);
    const hasSettled = settling !== null && query.name.startsWith(settling.insert.ofAny.name);
    if (!hasSettled || code === NO_PARTITION || !SETTLEMENT_ERROR.test(code)) throw error;
    return settleApart(client, rows, settling, error, runs);
  }
}

async function settleApart(
  client: ClientBase,
  rows: readonly LogRow[],
  { settleOne }: Settling,
  cause: unknown,
  runs: RunCounter | null,
): Promise<bigint | null> {
  await client.query('BEGIN');
  let failed: Map<string, unknown>;
  let result: CountedResult | null = null;
  const stamp: RunStamp | null = runs === null ? null : runs.stamp();
  try {
    if (stamp !== null) {
      result = (await client.query<CountedResult>(COUNT_ONLY, runs!.values(stamp))).rows[0]!;
      if (!result.same) runs!.acknowledge(stamp, result);
    }
    const inserted = await client.query<{ id: string; started_at: Date }>(queryOf(CHARGED_ONLY.ofAny, rows));
    failed = await settleEach(client, inserted.rows, settleOne);
    await client.query('COMMIT');
  } catch (error) {
    // If the connection is gone, Postgres has ended the transaction.
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
  logger.fatal(
    `Charges could not be settled with their rows, which are stored: ${describeError(cause)}. Please report this.`,
  );
  for (const [id, error] of failed) {
    logger.fatal(`The charge of call ${id} counts against no budget: ${describeError(error)}`);
  }
  return stamp === null ? null : runs!.acknowledge(stamp, result!);
}

/**
 * Settles rows that the current transaction has inserted, one by one. For rows whose settlement failed as a whole: the
 * log has priority.
 *
 * @returns the errors of rows that could not be settled
 */
async function settleEach(
  client: ClientBase,
  rows: readonly { id: string; started_at: Date }[],
  settleOne: string,
): Promise<Map<string, unknown>> {
  const failed = new Map<string, unknown>();
  for (const { id, started_at } of rows) {
    await client.query('SAVEPOINT settle');
    try {
      await client.query(settleOne, [started_at, id]);
    } catch (error) {
      await client.query('ROLLBACK TO SAVEPOINT settle');
      failed.set(id, error);
    }
    await client.query('RELEASE SAVEPOINT settle');
  }
  return failed;
}

export interface BatchResults {
  /** Saves a row that Postgres rejected for its data. */
  reject(row: LogRow, error: unknown): Promise<void>;
  /**
   * Called for the rows in their order, so many at a time.
   *
   * @param seq the one that acknowledges them: if Postgres has a lower one for this run, it has lost them; null: they are
   *   not counted
   */
  settled(count: number, rejected: boolean, seq: bigint | null): void;
}

/**
 * Inserts rows. A row that Postgres rejects for its data is found by bisection, so that only that row is lost.
 *
 * @param areNew as of insertCreatingDays()
 * @throws any other error; the rows that were not settled by then are for the next attempt
 */
export async function insertBatch(
  client: ClientBase,
  rows: readonly LogRow[],
  results: BatchResults,
  settling: Settling | null = null,
  jobs: JobKeeper | null = null,
  areNew = false,
  runs: RunCounter | null = null,
): Promise<void> {
  let seq: bigint | null;
  try {
    seq = await insertCreatingDays(client, rows, settling, areNew, runs);
    if (jobs !== null && rows.some(({ job }) => job !== undefined)) await jobs.add(client, rows);
  } catch (error) {
    const { code = '' } = error as { code?: string };
    // Classes 22 and 23 are errors of the data, except for a missing partition.
    if (!/^2[23]...$/.test(code) || code === NO_PARTITION) throw error;
    if (rows.length === 1) {
      await results.reject(rows[0]!, error);
      results.settled(1, true, null);
      return;
    }
    const middle = rows.length >> 1;
    await insertBatch(client, rows.slice(0, middle), results, settling, jobs, areNew, runs);
    await insertBatch(client, rows.slice(middle), results, settling, jobs, areNew, runs);
    return;
  }
  results.settled(rows.length, false, seq);
}

/** Saves a rejected row to a file. No input should ever cause this. @returns the message to log */
export async function keepRejected(root: string, row: LogRow, error: unknown): Promise<string> {
  const folder = join(root, 'rejected');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, `${row.id}.json`), `${JSON.stringify(row)}\n`, { mode: 0o600, flush: true });
  return `Postgres rejected row ${row.id}: ${describeError(error)}. It is kept in ${folder}; please report this.`;
}

/** What an array literal must not hold unescaped between quotes (PostgreSQL documentation, 8.15.6). */
const ESCAPED = /["\\]/g;

/**
 * A column as Postgres's text form of an array. pg would make the same of an array, and takes 2 µs a row more: this
 * escapes once what consecutive rows have in common, which is most of it. Nulls at the end are left out, which in most
 * batches is all of many columns: unnest() fills the shorter arrays up, and no id is null.
 */
function arrayLiteral(rows: readonly LogRow[], name: keyof LogRow): string {
  let literal = '';
  let nulls = 0;
  let last: LogRow[keyof LogRow] | undefined;
  let element = '';
  for (const row of rows) {
    const value = row[name];
    if (value === null) {
      nulls++;
      continue;
    }
    if (nulls > 0) {
      literal += ',NULL'.repeat(nulls);
      nulls = 0;
    }
    if (value !== last) {
      last = value;
      element = typeof value === 'string' ? `,"${value.replace(ESCAPED, '\\$&')}"` : `,${value}`;
    }
    literal += element;
  }
  return `{${literal.slice(1)}}`;
}
