import { Command } from 'commander';
import type { Page } from '../../database/page.js';
import type { JobView } from '../../jobs/jobs.schema.js';
import { path } from '../api.js';
import { action } from '../session.js';
import type { Column } from '../table.js';
import { minuteTime } from '../times.js';

interface ListOptions {
  open?: boolean;
  unknown?: boolean;
  provider?: string;
  limit?: string;
  cursor?: string;
}

/** `postern jobs …` */
export function jobsCommand(): Command {
  const jobs = new Command('jobs').description(
    'batches, background responses and videos, whose cost is known after their call',
  );

  jobs
    .command('list')
    .description('list jobs, the newest first')
    .option('--open', 'only jobs that have not ended')
    .option('--unknown', 'only jobs whose usage stays unknown')
    .option('--provider <name>', 'filter by provider')
    .option('--limit <n>', 'rows per page, 1 to 500 (default: 50)')
    .option('--cursor <cursor>', 'next_cursor of the previous page')
    .option('--wide', 'print every column in full, also if the terminal is narrower')
    .option('--json', 'print the page as JSON')
    .addHelpText(
      'after',
      `
CALL is the row of the request log that gets what the job used.

Examples:
  postern jobs list --open
  postern jobs list --unknown --provider openai`,
    )
    .action(
      action(async ({ api, out }, { open, unknown, ...query }: ListOptions) => {
        const state = open ? 'open' : unknown ? 'unknown' : undefined;
        const { provider, limit, cursor } = query;
        const page = await api.get<Page<JobView>>('jobs', { state, provider, limit, cursor });
        out.page(page, { noun: 'jobs', columns: COLUMNS });
      }),
    );

  jobs
    .command('show')
    .description('show a job, and the other calls that got it')
    .argument('<call>', 'ID of the call that created it')
    .option('--json', 'print the job as JSON')
    .addHelpText('after', '\nExample:\n  postern jobs show 01890a5d-ac96-774b-bcce-b302099a8057')
    .action(
      action(async ({ api, out }, _: object, id: string) => {
        const job = await api.get<JobView>(path('jobs', id));
        out.result(job, () =>
          out.fields(
            Object.entries(job).map(([name, value]) => [
              name,
              Array.isArray(value) ? value.join(' ') : value,
            ]),
          ),
        );
      }),
    );

  jobs
    .command('check')
    .description('ask the provider for a job within some seconds')
    .argument('<call>', 'ID of the call that created it')
    .option('--json', 'print the job as JSON')
    .addHelpText('after', '\nExample:\n  postern jobs check 01890a5d-ac96-774b-bcce-b302099a8057')
    .action(
      action(async ({ api, out }, _: object, id: string) => {
        const job = await api.post<JobView>(path('jobs', id, 'check'), {});
        out.result(
          job,
          () => `Provider ${job.provider} is asked within some seconds. See "postern jobs show ${id}".`,
        );
      }),
    );

  return jobs;
}

const COLUMNS: readonly Column<JobView>[] = [
  { head: 'CALL', cell: ({ id }) => id },
  { head: 'KIND', cell: ({ kind }) => kind },
  { head: 'PROVIDER', cell: ({ provider }) => provider },
  { head: 'KEY', cell: ({ team, key }) => `${team ?? '?'}/${key ?? '?'}` },
  { head: 'STATE', cell: ({ state }) => state },
  { head: 'PROBLEM', cell: ({ problem }) => problem ?? '' },
  { head: 'STARTED', cell: ({ started_at: at }) => minuteTime(at) },
  { head: 'NEXT CHECK', cell: ({ next_check_at: at }) => (at === null ? '' : minuteTime(at)) },
];
