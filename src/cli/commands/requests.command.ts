import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import { REASONS } from '../../request-log/columns.js';
import type { RequestView } from '../../requests/request-view.js';
import type { Recorded } from '../../requests/requests.schema.js';
import { ApiError, path, UnreachableError } from '../api.js';
import {
  addCallOptions,
  addPageOptions,
  addTimeOptions,
  type CallOptions,
  callQuery,
  listPages,
  type PageOptions,
  type TimeOptions,
} from '../list-options.js';
import { CliError } from '../cli-error.js';
import { LogTail } from '../log-tail.js';
import { jsonText, type Style, write } from '../output.js';
import { action, type Session } from '../session.js';
import { type Cell, type Column, count } from '../table.js';
import { shortTime } from '../times.js';

const POLL_MS = 500;
const MAX_LINES = 500;

/** `postern requests …` */
export function requestsCommand(): Command {
  const requests = new Command('requests').description('the request log: one row per forwarded call');

  const listing = requests.command('list').description('list calls, newest first');
  addPageOptions(addTimeOptions(addCallOptions(listing)))
    .option('--json', 'print the page as JSON, with every column')
    .addHelpText(
      'after',
      '\nExamples:\n  postern requests list --limit 5\n  postern requests list --team default --status 5xx --from 24h --json\n  postern requests list --failed --from yesterday --to today\n  postern requests list --provider-error insufficient_quota --from 1h',
    )
    .action(action(list));

  requests
    .command('show')
    .description('show a call, with every column')
    .argument('<id>', 'ID of the call: its x-gateway-request-id')
    .option('--json', 'print the row as JSON')
    .addHelpText('after', '\nExample:\n  postern requests show 01890a5d-ac96-774b-bcce-b302099a8057')
    .action(action(show));

  const tailing = requests.command('tail').description('print calls as they end, until Ctrl-C');
  addCallOptions(tailing)
    .option('--lines <n>', `number of past calls to start with, 0 to ${MAX_LINES} (default: 10)`)
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print one JSON object per line, with every column')
    .addHelpText('after', '\nExamples:\n  postern requests tail\n  postern requests tail --status 5xx --json')
    .action(action(tail));

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
  postern requests export --from 2030-01-01 --to 2030-02-01 > january.ndjson
  postern requests export --format csv --team default > calls.csv`,
    )
    .action(action(writeExport));

  return requests;
}

async function list({ api, out }: Session, options: CallOptions & TimeOptions & PageOptions) {
  const page = await listPages<Page<RequestView>>(api, 'requests', await callQuery(api, options), options);
  out.page(page, { noun: 'calls', columns: columnsOf(page.data.some((row) => reasonOf(row) !== null)) });
}

async function show({ api, out }: Session, _: object, id?: string) {
  const row = await api.get<RequestView>(path('requests', id!));
  out.result(row, () =>
    out.fields(
      Object.entries<unknown>({ ...row }).map(([name, value]) => {
        const style = name === 'status' || name === 'outcome' ? resultStyle(row) : undefined;
        // A column of JSON is shown as such.
        const cell = typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
        return [name, cell as Cell, style] as const;
      }),
    ),
  );
}

async function tail({ api, out }: Session, { lines = '10', ...options }: CallOptions & { lines?: string }) {
  if (!/^\d{1,3}$/.test(lines) || Number(lines) > MAX_LINES)
    throw new CliError(`--lines must be an integer from 0 to ${MAX_LINES}`);
  const query = await callQuery(api, options);
  const layout = out.layout(columnsOf(options.failed === true));
  const print = async (rows: readonly RequestView[]) => {
    if (out.isJson) return write(rows.map((row) => `${jsonText(row)}\n`).join(''));
    return write(rows.map((row) => `${layout.line(row)}\n`).join(''));
  };
  const log = new LogTail({
    newest: async (limit) => (await api.get<Page<RequestView>>('requests', { ...query, limit })).data,
    recorded: (after, limit) =>
      api.get<Recorded>('requests/recorded', {
        ...query,
        ...(after && { recorded_after: after.recorded_at, after_id: after.id }),
        limit,
      }),
  });
  if (!out.isJson) await write(`${layout.head()}\n`);
  if (!(await print(await log.begin(Number(lines))))) return;
  for (let unavailable = false; ;) {
    try {
      const { rows, more } = await log.next();
      if (!(await print(rows))) return;
      unavailable = false;
      if (!more) await sleep(POLL_MS);
    } catch (error) {
      if (!isTemporary(error)) throw error;
      if (!unavailable) console.error(`${(error as Error).message} Waiting for it.`);
      unavailable = true;
      await sleep(POLL_MS);
    }
  }
}

function isTemporary(error: unknown): boolean {
  return error instanceof UnreachableError || (error instanceof ApiError && error.status === 503);
}

async function writeExport(
  { api }: Session,
  { format, limit, ...options }: CallOptions & TimeOptions & { format?: string; limit?: string },
) {
  const response = await api.stream('requests/export', { ...(await callQuery(api, options)), format, limit });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body!) {
      // Leaving the loop cancels the rest.
      if (!(await write(decoder.decode(chunk as Uint8Array, { stream: true })))) return;
    }
  } catch (error) {
    throw new CliError('the export broke off: the output is not complete; run it again', { cause: error });
  }
  const until = response.headers.get('x-recorded-until');
  console.error(`For the next incremental export: --recorded-after ${until}`);
}

/** Widths fit most calls: `tail` prints line by line, so it cannot know the longest cell. */
const COLUMNS: readonly Column<RequestView>[] = [
  { head: 'STARTED', cell: ({ started_at: at }) => shortTime(at), width: 20 },
  { head: 'RESULT', cell: resultOf, style: resultStyle, min: 6, width: 6 },
  { head: 'KEY', cell: keyOf, min: 8, width: 14 },
  { head: 'MODEL', cell: ({ model }) => model, min: 8, width: 14 },
  { head: 'TOKENS', cell: tokensOf, align: 'right', width: 10 },
  { head: 'MS', cell: ({ duration_ms: ms }) => ms && Math.round(ms), align: 'right', width: 6 },
  { head: 'CALL', cell: ({ method, path }) => `${method} ${path ?? '-'}`, min: 20, drop: 3, width: 26 },
  { head: 'PROVIDER', cell: ({ provider }) => provider, min: 8, drop: 2 },
  { head: 'ID', cell: ({ id }) => id, drop: 1, width: 36 },
];

const REASON: Column<RequestView> = { head: 'REASON', cell: reasonOf, min: 12, width: 20, drop: 4 };

/** With the reason of failed calls beside their result, where there are such calls. */
function columnsOf(hasReasons: boolean): readonly Column<RequestView>[] {
  const [started, result, ...others] = COLUMNS;
  return hasReasons ? [started!, result!, REASON, ...others] : COLUMNS;
}

function reasonOf(row: RequestView): string | null {
  return REASONS.map((name) => row[name]).find((reason) => reason !== null) ?? null;
}

/** A name of a key is unique only within its team. A key that was deleted has only its ID. */
function keyOf({ team, key, key_id: id }: RequestView): string {
  return key === null ? id : `${team ?? '?'}/${key}`;
}

function tokensOf({ prompt_tokens: prompt, completion_tokens: completion }: RequestView): string | null {
  const shown = (tokens: number | null) => (tokens === null ? '-' : count(tokens));
  return prompt === null && completion === null ? null : `${shown(prompt)}+${shown(completion)}`;
}

/** The status, and the outcome unless the whole response was sent. */
function resultOf({ status, outcome }: RequestView): string {
  return [status, outcome === 'completed' ? null : outcome].filter((part) => part !== null).join(' ') || '-';
}

function resultStyle({ status, outcome }: RequestView): Style | undefined {
  if (outcome === 'client_aborted' || status === 429) return 'yellow';
  if (status === null || status >= 400 || !['completed', 'replayed', 'cached'].includes(outcome))
    return 'red';
  return undefined;
}
