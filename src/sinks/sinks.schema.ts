import { z } from 'zod';
import {
  EXAMPLE_TIME,
  flag,
  oneOf,
  pageOf,
  pathId,
  shownId,
  time,
  timestamp,
  version,
} from '../admin/fields.schema.js';
import { SINK_KINDS, type SinkKind } from './sink.entity.js';
import { checkSinkUrl, targetProblem } from './sink-url.js';

const NAME = 'must be 1 to 63 lower-case letters, digits and hyphens, a letter first, such as warehouse';
const SECRET = 'must be text of 1 to 16,384 characters, or null for none';
const EXAMPLE_URL = 'https://clickhouse.example.com:8443';
const KIND_ABOUT =
  '`clickhouse`: inserts into a table; `jetstream`: messages of a NATS stream; `http`: requests with NDJSON.';
const TARGET_ABOUT =
  'Table of ClickHouse, with its database or without; subject of JetStream; null for `http`.';
const ENABLED_ABOUT =
  'False: the sink is paused. Then nothing is sent, and old rows are deleted all the same.';

/** A sink as the API shows it. */
export const sinkSchema = z
  .strictObject({
    id: shownId('the sink'),
    name: z.string().meta({ description: 'Its name, unique.', example: 'warehouse' }),
    kind: z.enum(SINK_KINDS).meta({ description: KIND_ABOUT }),
    url: z.string().meta({
      description:
        'Scheme, host and port of the URL; `/…` if there is more, which may be a credential and is not shown.',
      example: EXAMPLE_URL,
    }),
    target: z.string().nullable().meta({ description: TARGET_ABOUT, example: 'postern.request_log' }),
    secret_state: z.enum(['sealed', 'unreadable']).meta({
      description:
        '`unreadable`: the URL and the secret were encrypted with another master key, so nothing can be sent.',
    }),
    enabled: z.boolean().meta({ description: ENABLED_ABOUT }),
    state: z.enum(['current', 'sending', 'failing', 'paused']).meta({
      description:
        '`current`: it has all rows but those of the last seconds; `sending`: older rows are being sent; `failing`: it does not take rows, see `last_error`.',
    }),
    recorded_until: timestamp('The sink has all rows that were recorded before this time.'),
    lag_seconds: z.number().meta({
      description: 'Age of the oldest row that the sink may not have.',
      example: 1.2,
    }),
    rows_sent: z.int().meta({ description: 'Rows that the sink has taken.', example: 12_000_000 }),
    sent_at: timestamp('When the sink last took rows; null: never.').nullable(),
    failing_since: timestamp('Since when the sink takes no rows; null: it does.').nullable(),
    last_error: z.string().nullable().meta({
      description: 'Why it last took no rows, with the remedy; null: that has not happened.',
      example: null,
    }),
    last_error_at: timestamp('When that was.').nullable(),
    version: version(),
    created_at: timestamp('When the sink was created.'),
    updated_at: timestamp('When the sink was last changed.'),
  })
  .meta({ id: 'Sink' });
export type SinkView = z.output<typeof sinkSchema>;

export const sinkPageSchema = pageOf('SinkPage', sinkSchema);

const name = z.string(NAME).regex(/^[a-z][a-z0-9-]{0,62}$/, NAME);
const url = z.string('must be a URL').max(2_048, 'must be 2,048 characters at most');
const secret = z
  .string(SECRET)
  .min(1, SECRET)
  .max(16_384, SECRET)

  .refine((text) => !/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(text), SECRET)
  .nullable();
const target = z.string('must be text').max(200, 'must be 200 characters at most').nullable();

const about = {
  name: { description: 'A name for it, also in metrics.', example: 'warehouse' },
  url: {
    description:
      'Where rows are sent. `https` or `tls` for public addresses; no link-local or cloud metadata addresses.',
    example: EXAMPLE_URL,
  },
  secret: {
    description:
      'ClickHouse: `user:password`. JetStream: `user:password`, a token, or the text of a credentials file. HTTP: sent as a bearer token. Never shown.',
    example: 'postern:…',
  },
  target: { description: TARGET_ABOUT, example: 'postern.request_log' },
  from: {
    description: 'Only rows recorded at this time or later; absent: all rows of the log.',
    example: EXAMPLE_TIME,
  },
} as const;

/** The members of a new sink, each by itself. */
export const newSinkMembers = {
  name: name.meta(about.name),
  kind: oneOf(SINK_KINDS).meta({ description: KIND_ABOUT }),
  url: url.meta(about.url),
  secret: secret.default(null).meta(about.secret),
  target: target.default(null).meta(about.target),
  from: time().optional().meta(about.from),
};

const checkable = z.object({
  kind: oneOf(SINK_KINDS),
  url: z.union([url, z.object({})]),
  target: target.default(null),
});

/**
 * Adds what depends on the kind to the schema of a new sink: its URL, in normal form, and its target. An object in place of
 * the URL stays as it is.
 */
export function byKind<T extends z.ZodType<{ kind: SinkKind; url: string | object; target: string | null }>>(
  schema: T,
) {
  return schema
    .superRefine(
      (sink, context) => {
        const { problem } = typeof sink.url === 'string' ? checkSinkUrl(sink.kind, sink.url) : {};
        if (problem !== undefined) context.addIssue({ code: 'custom', path: ['url'], message: problem });
        const ofTarget = targetProblem(sink.kind, sink.target ?? null);
        if (ofTarget !== null) context.addIssue({ code: 'custom', path: ['target'], message: ofTarget });
      },
      // Also if another member is wrong: all errors are reported at once.
      { when: ({ value }) => checkable.safeParse(value).success },
    )
    .transform((sink: z.output<T>) =>
      typeof sink.url === 'string' ? { ...sink, url: checkSinkUrl(sink.kind, sink.url).url! } : sink,
    );
}

/** `POST /admin/v1/sinks` */
export const newSinkSchema = byKind(z.strictObject(newSinkMembers)).meta({
  id: 'NewSink',
  example: {
    name: 'warehouse',
    kind: 'clickhouse',
    url: EXAMPLE_URL,
    secret: 'postern:…',
    target: 'postern.request_log',
  },
});
export type NewSink = z.output<typeof newSinkSchema>;

/** `PATCH /admin/v1/sinks/:id`; the kind stays. */
export const sinkChangeSchema = z
  .strictObject({
    name: name.optional().meta(about.name),
    url: url.optional().meta({
      ...about.url,
      description: `${about.url.description} A URL on another host needs the secret again.`,
    }),
    secret: secret.optional().meta(about.secret),
    target: target.optional().meta(about.target),
    enabled: flag().optional().meta({ description: ENABLED_ABOUT, example: false }),
  })
  .meta({ id: 'SinkChange', example: { enabled: false } });
export type SinkChange = z.output<typeof sinkChangeSchema>;

/** `POST /admin/v1/sinks/:id/replay` */
export const sinkReplaySchema = z
  .strictObject({
    from: time().meta({
      description: 'Rows recorded at this time or later are sent again.',
      example: EXAMPLE_TIME,
    }),
  })
  .meta({ id: 'SinkReplay', example: { from: EXAMPLE_TIME } });
export type SinkReplay = z.output<typeof sinkReplaySchema>;

export const sinkId = pathId('sink');
