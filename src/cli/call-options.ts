import type { Command } from 'commander';

/** Options that say which calls; the same for list, tail, export and usage. */
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
    .option('--team <name or id>', 'only those of this team')
    .option('--key <id or prefix>', 'only those of this key, by its id or the 12 characters that lists show')
    .option('--provider <name>', 'only those to this provider')
    .option('--model <name>', 'only those for this model')
    .option('--status <status>', 'only those answered so, such as 429 or 5xx')
    .option('--outcome <outcome>', 'only those that ended so, such as completed or client_aborted');
}

export function addTimeOptions(command: Command): Command {
  return command
    .option('--from <time>', 'started at this time or later, such as 2030-01-31T12:00:00Z')
    .option('--to <time>', 'started before this time')
    .option('--recorded-after <time>', 'in the database after this time');
}

/** Options under the names of the admin API's parameters. */
export function asQuery({ recordedAfter, ...options }: CallOptions & TimeOptions): Record<string, unknown> {
  return { ...options, recorded_after: recordedAfter };
}
