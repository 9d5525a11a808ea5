import { Command } from 'commander';
import { CallFilters } from '../requests/call-filters.js';
import { parseInput } from '../admin/parse-input.js';
import { exportSchema, requestFilterSchema } from '../requests/requests.schema.js';
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
import { CALL_HEAD, callCells } from './call-table.js';
import { tailCommand } from './tail.command.js';
import { withServices } from './with-services.js';

interface ListOptions extends OutputOptions, CallOptions, TimeOptions {
  limit?: string;
  cursor?: string;
}

interface ExportOptions extends CallOptions, TimeOptions {
  format?: string;
  limit?: string;
}

/** `postern requests …` */
export function requestsCommand(): Command {
  const requests = new Command('requests');

  const list = requests.command('list').description('show calls, newest first');
  addTimeOptions(addCallOptions(list))
    .option('--limit <n>', 'how many, 1 to 500 (default 50)')
    .option('--cursor <cursor>', 'continue after the page before')
    .option('--json', 'print the page as JSON, with every column')
    .addHelpText(
      'after',
      '\nExamples:\n  postern requests list --limit 5\n  postern requests list --team default --status 5xx --json',
    )
    .action(printList);

  requests.addCommand(tailCommand());

  const exporting = requests
    .command('export')
    .description('write all calls, or those chosen, to standard output');
  addTimeOptions(addCallOptions(exporting))
    .option('--format <format>', 'ndjson or csv (default: ndjson)')
    .option('--limit <n>', 'how many at most (default: all)')
    .addHelpText(
      'after',
      `
CSV is for spreadsheets: a cell that one would run as a formula begins with '. NDJSON is exact.
For incremental exports, standard error tells the --recorded-after of the next one.

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
  printPage(page, { json }, CALL_HEAD, callCells);
}

async function printExport(options: ExportOptions): Promise<void> {
  const order = parseInput(exportSchema, asQuery(options));
  await withServices(async (app) => {
    const opened = await app.get(RequestLogExport).open(await app.get(CallFilters).resolve(order));
    try {
      for await (const text of opened.chunks()) if (!(await write(text))) return;
      console.error(`To go on from here another time: --recorded-after ${opened.until.toISOString()}`);
    } finally {
      await opened.close();
    }
  });
}
