import { z } from 'zod';
import { oneOf, pageOf, paging, pathId, searchText, shownId, timestamp } from '../admin/fields.schema.js';
import { JOB_KINDS, JOB_STATES } from './provider-job.entity.js';

export const jobId = pathId('a job');

/** Work that a provider goes on with after it has responded. */
export const jobSchema = z
  .strictObject({
    id: shownId('the call that created it, as in the request log'),
    kind: z.enum(JOB_KINDS).meta({ description: 'What it is.', example: 'batch' }),
    provider: z.string().meta({ description: 'Name of the provider.', example: 'openai' }),
    model: z.string().nullable().meta({
      description: 'The model that the request named; null: none, as of most batches.',
      example: 'gpt-5',
    }),
    team: z.string().nullable().meta({ description: 'Name of the team of the key.', example: 'search' }),
    team_id: shownId('the team'),
    key: z.string().nullable().meta({ description: 'Name of the key.', example: 'ci' }),
    key_id: shownId('the key'),
    state: z.enum(JOB_STATES).meta({
      description:
        '`open`: it may still end; `settled`: what it used is in the request log; `unknown`: that cannot be found out.',
      example: 'open',
    }),
    problem: z.string().nullable().meta({
      description: 'Why the last check did not settle it; null: it goes on, or it is settled.',
      example: 'unauthorized',
    }),
    started_at: timestamp('When the call arrived.'),
    checked_at: timestamp('When the provider was last asked; null: not yet.').nullable(),
    next_check_at: timestamp('When the provider is asked next; null: never.').nullable(),
    ended_at: timestamp('When it was settled or given up; null: it is open.').nullable(),
    tries: z.int().meta({ description: 'Checks that have not settled it.', example: 3 }),
    duplicates: z
      .array(shownId('a call'))
      .meta({ description: 'Other calls that got the same job. They cost nothing.', example: [] }),
  })
  .meta({ id: 'Job' });
export type JobView = z.output<typeof jobSchema>;

export const jobPageSchema = pageOf('JobPage', jobSchema);

/** `GET /admin/v1/jobs` */
export const jobFilterSchema = z.strictObject({
  ...paging,
  state: oneOf(JOB_STATES).optional().meta({ description: 'Only jobs in this state.', example: 'open' }),
  provider: searchText().optional().meta({ description: 'Only jobs of this provider.', example: 'openai' }),
});
export type JobFilter = z.output<typeof jobFilterSchema>;
