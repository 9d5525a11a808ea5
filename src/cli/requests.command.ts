import { Command } from 'commander';
import { checked } from '../admin/checked.js';
import { requestFilterSchema } from '../admin/requests.schema.js';
import { TeamsService } from '../keys/teams.service.js';
import { RequestLogReader } from '../request-log/request-log.reader.js';
import type { RequestView } from '../request-log/request-view.js';
import { type OutputOptions, printPage } from './output.js';
import { type Cell, shortTime } from './table.js';
import { withServices } from './with-services.js';

interface ListOptions extends OutputOptions {
  team?: string;
  key?: string;
  provider?: string;
  model?: string;
  status?: string;
  outcome?: string;
  from?: string;
  to?: string;
  recordedAfter?: string;
  limit?: string;
  cursor?: string;
}

/** `postern requests …` */
export function requestsCommand(): Command {
  const requests = new Command('requests').description('the request log: one row per forwarded call');

  requests
    .command('list')
    .description('show calls, newest first')
    .option('--team <name or id>', 'only those of this team')
    .option('--key <id>', 'only those of this key')
    .option('--provider <name>', 'only those to this provider')
    .option('--model <name>', 'only those for this model')
    .option('--status <status>', 'only 429 or 5xx')
    .option('--outcome <outcome>', 'only those that ended so, such as completed or client_aborted')
    .option('--from <time>', 'started at this time or later, such as 2030-01-31T12:00:00Z')
    .option('--to <time>', 'started before this time')
    .option('--recorded-after <time>', 'in the database after this time')
    .option('--limit <n>', 'how many, 1 to 500 (default 50)')
    .option('--cursor <cursor>', 'continue after the page before')
    .option('--json', 'print the page as JSON, with every column')
    .addHelpText(
      'after',
      '\nExamples:\n  postern requests list --limit 5\n  postern requests list --team default --status 5xx --json',
    )
    .action(list);

  return requests;
}

async function list({ json, recordedAfter, ...options }: ListOptions): Promise<void> {
  const { team, ...filter } = checked(requestFilterSchema, { ...options, recorded_after: recordedAfter });
  const page = await withServices(async (app) => {
    const teamId = team && (await app.get(TeamsService).resolve(team)).id;
    return app.get(RequestLogReader).list({ ...filter, team: teamId });
  });
  const head = ['STARTED', 'STATUS', 'OUTCOME', 'CALL', 'PROVIDER', 'MODEL', 'TOKENS', 'MS', 'ID'];
  printPage(page, { json }, head, cells);
}

function cells(row: RequestView): readonly Cell[] {
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
