import { type Command, Option } from 'commander';
import type { Page } from '../database/page.js';
import type { Api, Query } from './api.js';
import { findKeyId } from './lookup.js';
import { parseRange, parseTime } from './times.js';

/** Filters of list, tail, export and usage. */
export interface CallOptions {
  group?: string;
  team?: string;
  key?: string;
  owner?: string;
  costCenter?: string;
  provider?: string;
  model?: string;
  status?: string;
  outcome?: string;
  failed?: boolean;
  usageFinal?: string;
  providerError?: string;
  minDurationMs?: string;
  tag?: string;
  endUser?: string;
  session?: string;
  subject?: string;
  providerRequestId?: string;
}

export interface TimeOptions {
  from?: string;
  to?: string;
  recordedAfter?: string;
}

export interface PageOptions {
  limit?: string;
  cursor?: string;
  all?: boolean;
}

export function addCallOptions(command: Command): Command {
  return command
    .option('--group <name or id>', 'filter by group of teams')
    .option('--team <name or id>', 'filter by team')
    .option('--key <key>', 'filter by key: team/name, prefix or ID')
    .option('--owner <owner>', 'filter by owner of the key or its team')
    .option('--cost-center <name>', 'filter by cost center of the key or its team')
    .option('--provider <name>', 'filter by provider')
    .option('--model <name>', 'filter by model')
    .option('--status <statuses>', 'filter by HTTP status, for example 429 or 4xx,5xx')
    .option('--outcome <outcome>', 'filter by outcome, for example completed or client_aborted')
    .option('--failed', 'only calls with status 400 or above, or that broke off')
    .addOption(
      new Option(
        '--usage-final <true|false>',
        'false: only calls whose usage was not read to the end',
      ).choices(['true', 'false']),
    )
    .option(
      '--provider-error <type or code>',
      "filter by the provider's error, for example insufficient_quota",
    )
    .option('--min-duration-ms <ms>', 'only calls that took this long or longer, for example 5000')
    .option('--tag <name=value>', 'filter by tag, for example env=prod; several separated by commas')
    .option('--end-user <name>', 'filter by end user, as the log stores it')
    .option('--session <name>', 'filter by session')
    .option('--subject <subject>', 'filter by whom the token was issued to, as the log stores it')
    .option('--provider-request-id <id>', 'filter by the ID that the provider gave its response');
}

export function addRangeOptions(command: Command): Command {
  return command
    .option('--from <time>', 'start, inclusive: 24h, 7d, yesterday, 2030-01-31, 2030-01-31T12:00:00Z')
    .option('--to <time>', 'end, exclusive, in the same forms');
}

export function addTimeOptions(command: Command): Command {
  return addRangeOptions(command).option(
    '--recorded-after <time>',
    'only calls that reached the database after this time',
  );
}

export function addPageOptions(command: Command): Command {
  return command
    .option('--limit <n>', 'number of rows, 1 to 500 (default: 50)')
    .option('--cursor <cursor>', 'continue after the previous page')
    .option('--all', 'follow the pages to the end')
    .option('--wide', 'print every column in full, also if the terminal is narrower');
}

/** The options as parameters of the admin API. */
export async function callQuery(api: Api, options: CallOptions & TimeOptions): Promise<Query> {
  const {
    group,
    team,
    key,
    owner,
    costCenter,
    provider,
    model,
    status,
    outcome,
    failed,
    minDurationMs,
    recordedAfter,
  } = options;
  const { tag, endUser, session, subject, providerRequestId, providerError, usageFinal } = options;
  const range = parseRange(options, await api.zone());
  return {
    ...{
      group,
      team,
      owner,
      cost_center: costCenter,
      provider,
      model,
      status,
      outcome,
      min_duration_ms: minDurationMs,
      ...range,
    },
    ...{
      tag,
      end_user: endUser,
      session,
      subject,
      provider_request_id: providerRequestId,
      provider_error: providerError,
      usage_final: usageFinal,
    },
    ...(failed === true && { failed: 'true' }),
    ...(recordedAfter !== undefined && {
      recorded_after: parseTime(recordedAfter, -1, '--recorded-after', await api.zone()),
    }),
    ...(key !== undefined && { key: await findKeyId(api, key) }),
  };
}

/** Reads a page of a list, or with `--all` every page as one. */
export async function listPages<P extends Page<unknown>>(
  api: Api,
  path: string,
  query: Query,
  { limit, cursor, all = false }: PageOptions,
): Promise<P> {
  let whole: P | undefined;
  for await (const page of api.pages<P>(path, { ...query, limit, cursor }, all)) {
    whole = whole === undefined ? page : { ...whole, data: [...whole.data, ...page.data], next_cursor: null };
  }
  return { ...whole!, ...(all && { next_cursor: null }) };
}
