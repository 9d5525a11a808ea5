import { Command } from 'commander';
import { parseInput } from '../admin/parse-input.js';
import { usageFilterSchema } from '../usage/usage.schema.js';
import { UsageService } from '../usage/usage.service.js';
import {
  addCallOptions,
  addTimeOptions,
  asQuery,
  type CallOptions,
  type TimeOptions,
} from './call-options.js';
import { type OutputOptions, printPage } from './output.js';
import { withServices } from './with-services.js';

interface UsageOptions extends OutputOptions, CallOptions, TimeOptions {
  groupBy?: string;
  limit?: string;
  cursor?: string;
}

/** `postern usage` */
export function usageCommand(): Command {
  const command = new Command('usage').option(
    '--group-by <groups>',
    'team, key, provider, model, day or hour (UTC), separated by commas (default: team,day)',
  );
  return addTimeOptions(addCallOptions(command))
    .option('--limit <n>', 'number of groups, 1 to 500 (default: 50)')
    .option('--cursor <cursor>', 'continue after the previous page')
    .option('--json', 'print the page as JSON')
    .addHelpText(
      'after',
      `
An error is a call with status 400 or above, or one that the provider or this gateway did not complete.

Examples:
  postern usage --from 2030-01-01T00:00:00Z
  postern usage --group-by key,model --team default --json`,
    )
    .action(print);
}

async function print({ json, groupBy, ...options }: UsageOptions): Promise<void> {
  const order = parseInput(usageFilterSchema, { ...asQuery(options), group_by: groupBy });
  const page = await withServices((app) => app.get(UsageService).list(order));
  const groups = (['day', 'hour', 'team', 'key', 'provider', 'model'] as const).filter((group) =>
    order.group_by.includes(group),
  );
  const head = [
    ...groups.map((group) => group.toUpperCase()),
    'CALLS',
    'ERRORS',
    'PROMPT',
    'COMPLETION',
    'CACHED',
    'REASONING',
    'BYTES IN',
    'BYTES OUT',
  ];
  printPage(page, 'calls', { json }, head, (row) => [
    // A team or key that was deleted has only its ID.
    ...groups.map((group) =>
      group === 'team'
        ? (row.team ?? row.team_id!)
        : group === 'key'
          ? (row.key ?? row.key_id!)
          : (row[group] ?? null),
    ),
    row.calls,
    row.errors,
    row.prompt_tokens,
    row.completion_tokens,
    row.cached_tokens,
    row.reasoning_tokens,
    row.request_bytes,
    row.response_bytes,
  ]);
}
