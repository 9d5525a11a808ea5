import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { CallFilters } from '../requests/call-filters.js';
import { parseInput } from '../admin/parse-input.js';
import { tailSchema } from '../requests/requests.schema.js';
import { describeError } from '../errors/describe-error.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';
import { LogTail } from '../requests/log-tail.js';
import { RequestLogReader } from '../requests/request-log.reader.js';
import type { RequestView } from '../requests/request-view.js';
import { addCallOptions, type CallOptions } from './call-options.js';
import { CALL_HEAD, CALL_WIDTHS, callCells } from './call-table.js';
import { type OutputOptions, write } from './output.js';
import { table } from './table.js';
import { withServices } from './with-services.js';

const POLL_MS = 500;

interface TailOptions extends OutputOptions, CallOptions {
  lines?: string;
}

/** `postern requests tail` */
export function tailCommand(): Command {
  const command = new Command('tail').description('follow the log: calls as they end, until Ctrl-C');
  return addCallOptions(command)
    .option('--lines <n>', 'begin with the last ones, 0 to 500 (default 10)')
    .option('--json', 'print a JSON object a line, with every column')
    .addHelpText('after', '\nExamples:\n  postern requests tail\n  postern requests tail --status 5xx --json')
    .action(tail);
}

async function tail({ json, ...options }: TailOptions): Promise<void> {
  const { lines, ...filter } = parseInput(tailSchema, options);
  await withServices(async (app) => {
    const log = new LogTail(app.get(RequestLogReader), await app.get(CallFilters).resolve(filter));
    const print = (rows: readonly RequestView[]) => write(json ? jsonLines(rows) : tableLines(rows));
    if (!json) await write(`${table(CALL_HEAD, [], CALL_WIDTHS)}\n`);
    if (!(await print(await log.begin(lines)))) return;
    for (let isAway = false; ;) {
      try {
        const { rows, more } = await log.next();
        if (!(await print(rows))) return;
        isAway = false;
        if (!more) await sleep(POLL_MS);
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error;
        if (!isAway) console.error(`Postgres is away: ${describeError(error)}. Going on when it is back.`);
        isAway = true;
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
