import { z } from 'zod';
import { pageOf, paging, shownId, timestamp } from '../../admin/fields.schema.js';
import { REGRESSION_STATES } from '../database-regression.entity.js';

const count = (description: string) => z.int().meta({ description, example: 0 });

const runSchema = z
  .strictObject({
    run: shownId('the process run: the name of the directory of its journal'),
    surviving: z.int().meta({ description: 'The last batch that is in Postgres.', example: 4_120 }),
    acknowledged: z.int().meta({
      description: 'The last batch that Postgres had acknowledged.',
      example: 4_187,
    }),
  })
  .meta({ id: 'DatabaseRegressionRun' });

const entrySchema = z
  .strictObject({
    id: shownId('the entry of the audit log'),
    at: timestamp('When the change was made.'),
    actor: z.string().meta({ description: 'Who made it.', example: 'admin-token' }),
    action: z.string().meta({ description: 'What was done.', example: 'rotated' }),
    subject_type: z.string().meta({ description: 'With what kind of object.', example: 'key' }),
    subject_id: shownId('the object'),
    subject_name: z.string().meta({ description: 'Its name.', example: 'search/ci' }),
  })
  .meta({ id: 'LostChange' });

/** A regression as the API shows it. */
export const regressionSchema = z
  .strictObject({
    id: shownId('the regression'),
    state: z.enum(REGRESSION_STATES).meta({
      description:
        '`put_back`: the processes put back what they have; `waiting`: more is lost than journals keep, as after a restored backup, and an administrator decides; `dismissed`: nothing is put back; `another_database`: nothing of the processes is there.',
      example: 'put_back',
    }),
    server: timestamp('Start of the Postgres server on which it was noticed.'),
    noticed_at: timestamp('When it was noticed.'),
    lost_from: timestamp('What was written from then on may be lost; null: unknown.').nullable(),
    gap_seconds: z.int().nullable().meta({ description: 'How long the lost time is.', example: 12 }),
    runs: z.array(runSchema).meta({ description: 'The process runs that lost something.' }),
    rows_put_back: count('Rows of the request log that were put back.'),
    rows_skipped: count('Rows of days that retention has removed.'),
    claims_put_back: count('Idempotency-Keys that were put back.'),
    ends_put_back: count(
      'Revocations and other ends of keys, tokens, sessions and people that were put back.',
    ),
    lost_entries: z
      .array(entrySchema)
      .meta({ description: 'Changes that were lost and that nobody applies again: repeat them.' }),
  })
  .meta({ id: 'DatabaseRegression' });
export type RegressionView = z.output<typeof regressionSchema>;

export const regressionPageSchema = pageOf('DatabaseRegressionPage', regressionSchema);

/** `GET /admin/v1/database/regressions` and `postern database regressions list` */
export const regressionFilterSchema = z.strictObject(paging);
export type RegressionFilter = z.output<typeof regressionFilterSchema>;
