import { z } from 'zod';
import { timestamp } from '../admin/fields.schema.js';

const count = (description: string, example: number) => z.int().meta({ description, example });
const seconds = (description: string) => z.number().meta({ description, example: 0 });
const flag = (description: string) => z.boolean().meta({ description });
const text = (description: string, example: string | null) => z.string().meta({ description, example });

/** `GET /admin/v1/system` */
export const systemSchema = z
  .strictObject({
    version: text('Of this gateway.', '0.1.0'),
    commit: text('Commit of the clone that the gateway runs in; null if it is no clone.', null).nullable(),
    node: text('Version of Node.js.', 'v20.20.2'),
    started_at: timestamp('When this process started.'),
    status: z.enum(['ok', 'degraded', 'unavailable']).meta({ description: 'As `GET /health/ready` says.' }),
    reasons: z.array(z.string()).meta({ description: 'What does not work.', example: [] }),
    journal: z
      .strictObject({
        accepting: flag('False: new calls get 503.'),
        degraded: text('Why it does not keep all its guarantees now; null if it does.', null).nullable(),
        bytes: count('Size of the files of this process.', 65_536),
        oldest_seconds: seconds('Age of the oldest file that is still needed; 0 without one.'),
      })
      .meta({ description: 'The journal of this process.' }),
    log_writer: z
      .strictObject({
        persisted: count('Rows that this process wrote to Postgres.', 12_000),
        waiting: count('Rows that are in memory and not in Postgres yet.', 3),
        spilled: count('Rows that are only in the journal.', 0),
        rejected: count('Rows that Postgres rejected; each is stored in a file.', 0),
        failing_seconds: seconds(
          'For how long writing has failed, all the time or again and again; 0 while it succeeds.',
        ),
      })
      .meta({ description: 'What this process writes to Postgres.' }),
    usage_as_of: timestamp('Calls recorded until then are in the sums of usage.').nullable(),
    database: z
      .strictObject({
        version: text('Version of Postgres.', '16.4'),
        bytes: count('Size of the database.', 104_857_600),
      })
      .meta({ description: 'The database of the gateway.' }),
    processes: z
      .array(
        z.strictObject({
          address: text('As Postgres sees it; null for a local socket.', '192.0.2.7').nullable(),
          connected_at: timestamp('When it connected to Postgres.'),
        }),
      )
      .meta({ description: 'Gateway processes that are connected to this database.' }),
    partitions: z
      .array(
        z.strictObject({
          name: text('Name of the table.', 'request_log_20260131'),
          bytes: count('Size with its indexes.', 1_048_576),
          rows: count('Rows, as Postgres estimates; null before its first estimate.', 52_000).nullable(),
        }),
      )
      .meta({ description: 'Days of the request log, newest first.' }),
    modules: z
      .array(
        z.strictObject({
          name: text('As MODULES or the module itself says.', '@acme/postern-quotas'),
          version: text('Null if neither it nor its package says.', '1.2.0').nullable(),
          loaded_by: z
            .enum(['MODULES', 'import'])
            .meta({ description: 'Whether MODULES names it, or the application imports it.' }),
        }),
      )
      .meta({ description: 'Modules besides those of the gateway.' }),
    settings: z
      .array(
        z.strictObject({
          name: text('Environment variable.', 'LOG_LEVEL'),
          changed: flag('Whether its value is not the default; of a secret, whether it is set or generated.'),
          hidden: flag(
            'Whether its value is not shown: secrets, URLs that may contain one, settings of modules.',
          ),
          value: text('Null if it is hidden or not set.', 'info').nullable(),
        }),
      )
      .meta({ description: 'Settings of this process.' }),
  })
  .meta({ id: 'System' });
export type SystemView = z.output<typeof systemSchema>;
