import type { Command } from 'commander';

/** Filters of list, tail, export and usage. */
export interface CallOptions {
  team?: string;
  key?: string;
  provider?: string;
  model?: string;
  status?: string;
  outcome?: string;
}

export interface TimeOptions {
  from?: string;
  to?: string;
  recordedAfter?: string;
}

export function addCallOptions(command: Command): Command {
  return command
    .option('--team <name or id>', 'filter by team')
    .option('--key <id or prefix>', 'filter by key: its ID or the 12 characters that lists show')
    .option('--provider <name>', 'filter by provider')
    .option('--model <name>', 'filter by model')
    .option('--status <status>', 'filter by HTTP status, for example 429 or 5xx')
    .option('--outcome <outcome>', 'filter by outcome, for example completed or client_aborted');
}

export function addTimeOptions(command: Command): Command {
  return command
    .option('--from <time>', 'start of the range, inclusive, for example 2030-01-31T12:00:00Z')
    .option('--to <time>', 'end of the range, exclusive')
    .option('--recorded-after <time>', 'only calls that reached the database after this time');
}

/** The options under the names of the admin API's parameters. */
export function asQuery({ recordedAfter, ...options }: CallOptions & TimeOptions): Record<string, unknown> {
  return { ...options, recorded_after: recordedAfter };
}
