import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { CallFilters } from '../requests/call-filters.js';
import { parseInput } from '../admin/parse-input.js';
import { exportSchema, requestFilterSchema, tailSchema } from '../requests/requests.schema.js';
import type { RequestView } from '../requests/request-view.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';
import { describeError } from '../errors/describe-error.js';
import { LogTail } from '../requests/log-tail.js';
import { RequestLogExport } from '../requests/request-log.export.js';
import { RequestLogReader } from '../requests/request-log.reader.js';
import {
  addCallOptions,
  addTimeOptions,
  asQuery,
  type CallOptions,
  type TimeOptions,
} from './call-options.js';
import { type OutputOptions, printPage, write } from './output.js';
import { type Cell, shortTime, table } from './table.js';
import { withServices } from './with-services.js';

interface ListOptions extends OutputOptions, CallOptions, TimeOptions {
  limit?: string;
  cursor?: string;
}

interface ExportOptions extends CallOptions, TimeOptions {
  format?: string;
  limit?: string;
}

const POLL_MS = 500;

interface TailOptions extends OutputOptions, CallOptions {
  lines?: string;
}

/** The columns of `requests list` and `requests tail`. */
const CALL_HEAD = ['STARTED', 'STATUS', 'OUTCOME', 'CALL', 'PROVIDER', 'MODEL', 'TOKENS', 'MS', 'ID'];

/** Widths that fit most calls: `tail` prints line by line, so it cannot know the longest cell. */
const CALL_WIDTHS = [20, 6, 16, 26, 8, 20, 9, 6, 36];

/** `postern requests …` */
export function requestsCommand(): Command {
  const requests = new Command('requests');

  const list = requests.command('list').description('list calls, newest first');
  addTimeOptions(addCallOptions(list))
    .option('--limit <n>', 'number of rows, 1 to 500 (default: 50)')
    .option('--cursor <cursor>', 'continue after the previous page')
    .option('--json', 'print the page as JSON, with every column')
    .addHelpText(
      'after',
      '\nExamples:\n  postern requests list --limit 5\n  postern requests list --team default --status 5xx --json',
    )
    .action(printList);

  const tailing = requests.command('tail').description('print calls as they end, until Ctrl-C');
  addCallOptions(tailing)
    .option('--lines <n>', 'number of past calls to start with, 0 to 500 (default: 10)')
    .option('--json', 'print one JSON object per line, with every column')
    .addHelpText('after', '\nExamples:\n  postern requests tail\n  postern requests tail --status 5xx --json')
    .action(tail);

  const exporting = requests.command('export').description('write calls to standard output, all or filtered');
  addTimeOptions(addCallOptions(exporting))
    .option('--format <format>', 'ndjson or csv (default: ndjson)')
    .option('--limit <n>', 'maximum number of rows (default: all)')
    .addHelpText(
      'after',
      `
CSV is for spreadsheets: a cell that could run as a formula starts with '. NDJSON is exact.
For incremental exports, standard error has the --recorded-after of the next one.

Examples:
  postern requests export --from 2030-01-01T00:00:00Z --to 2030-02-01T00:00:00Z > january.ndjson
  postern requests export --format csv --team default > calls.csv`,
    )
    .action(printExport);

  return requests;
}

async function printList({ json, ...options }: ListOptions): Promise<void> {
  const filter = parseInput(requestFilterSchema, asQuery(options));
  const page = await withServices(async (app) =>
    app.get(RequestLogReader).list(await app.get(CallFilters).resolve(filter)),
  );
  printPage(page, 'calls', { json }, CALL_HEAD, callCells);
}

async function tail({ json, ...options }: TailOptions): Promise<void> {
  const { lines, ...filter } = parseInput(tailSchema, options);
  await withServices(async (app) => {
    const log = new LogTail(app.get(RequestLogReader), await app.get(CallFilters).resolve(filter));
    const print = (rows: readonly RequestView[]) => write(json ? jsonLines(rows) : tableLines(rows));
    if (!json) await write(`${table(CALL_HEAD, [], CALL_WIDTHS)}\n`);
    if (!(await print(await log.begin(lines)))) return;
    for (let unavailable = false; ;) {
      try {
        const { rows, more } = await log.next();
        if (!(await print(rows))) return;
        unavailable = false;
        if (!more) await sleep(POLL_MS);
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error;
        if (!unavailable) console.error(`Postgres is unavailable: ${describeError(error)}. Waiting for it.`);
        unavailable = true;
        await sleep(POLL_MS);
      }
    }
  });
}

function jsonLines(rows: readonly RequestView[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}

function tableLines(rows: readonly RequestView[]): string {
  return rows.map((row) => `${table(null, [callCells(row)], CALL_WIDTHS)}\n`).join('');
}

async function printExport(options: ExportOptions): Promise<void> {
  const order = parseInput(exportSchema, asQuery(options));
  await withServices(async (app) => {
    const opened = await app.get(RequestLogExport).open(await app.get(CallFilters).resolve(order));
    try {
      for await (const text of opened.chunks()) if (!(await write(text))) return;
      console.error(`For the next incremental export: --recorded-after ${opened.until.toISOString()}`);
    } finally {
      await opened.close();
    }
  });
}

function callCells(row: RequestView): readonly Cell[] {
  const { prompt_tokens: prompt, completion_tokens: completion } = row;
  return [
    shortTime(row.started_at),
    row.status,
    row.outcome,
    `${row.method} ${row.path ?? '-'}`,
    row.provider,
    row.model,
    prompt === null && completion === null ? null : `${prompt ?? '-'}+${completion ?? '-'}`,
    row.duration_ms && Math.round(row.duration_ms),
    row.id,
  ];
}
