import { z } from 'zod';
import {
  flag,
  oneOf,
  pageOf,
  searchText,
  shownId,
  timestamp,
  UNPRINTABLE,
  version,
} from '../admin/fields.schema.js';
import { modelPatterns } from '../teams/model-rules.js';
import { checkWebhookUrl } from '../webhooks/webhook-url.js';
import { RECEIVER_ERRORS } from '../webhooks/webhooks.schema.js';
import { ON_FAILURE, SENT } from './policy.entity.js';

/** Largest body of a test. */
export const MAX_TEST_BYTES = '4mb';
const MAX_TESTED = 1_048_576;

const EXAMPLE_URL = 'https://filter.example.com/decide';
const EXAMPLE_SECRET = 'whsec_NFyohv2Kx5m8bLcg0hBzj1NQe7HVYd0m1qgXkz3yD2E=';

const URL_ABOUT =
  'Where policies are asked with POST. By the rules for providers: `https` for public addresses, and no link-local or cloud metadata addresses.';
const SECRET_ABOUT =
  'Signs each request, as Standard Webhooks say: `whsec_` and the base64 of 24 to 64 bytes. Never shown.';
const APPLIES_ABOUT =
  'About which calls the policy is asked: those of the teams and of the keys, to the models. Absent or null members limit nothing.';
const TEAMS_ABOUT = 'Names or IDs of teams.';
const KEYS_ABOUT = 'Keys, each by its ID or as `team/name`, beside those of the teams.';
const MODELS_ABOUT =
  'Names of models, in which `*` stands for any characters. A call whose model is not known for certain may be to any.';
const SEND_ABOUT =
  '`head`: the policy gets facts of the call; `body`: the request body as well, and WebSockets of its keys are rejected.';
const TIMEOUT_ABOUT = 'Milliseconds that a decision may take, from 10 to 30,000.';
const ON_FAILURE_ABOUT =
  'What happens to a call if the receiver does not decide: `reject` (503 `policy_unavailable`) or `allow`.';
const CACHE_ABOUT =
  'Seconds that a decision counts for calls with the same team, key, end user, model, endpoint, tags and, with `send: body`, body and its type; 0: each call is asked about.';
const ORDER_ABOUT = 'Policies are asked in ascending order, those with the same by name.';
const ENABLED_ABOUT = 'If false, the policy is not asked.';

const EXAMPLE_APPLIES = { teams: ['support'], keys: null, models: null };

/** A policy as the API shows it. */
export const policySchema = z
  .strictObject({
    id: shownId('the policy'),
    name: z.string().meta({ description: 'Its name, unique.', example: 'dlp' }),
    url: z.string().meta({
      description:
        'Scheme, host and port of the URL; `/…` if there is more, which may be a credential and is not shown.',
      example: 'https://filter.example.com/…',
    }),
    secret_state: z.enum(['sealed', 'unreadable']).meta({
      description:
        '`unreadable`: the URL and the secret were encrypted with another master key, so calls get 503.',
    }),
    applies_to: z
      .strictObject({
        teams: z
          .array(z.string())
          .nullable()
          .meta({ description: 'Names of teams.', example: ['support'] }),
        keys: z.array(z.string()).nullable().meta({ description: 'Keys as `team/name`.', example: null }),
        models: z.array(z.string()).nullable().meta({ description: MODELS_ABOUT, example: null }),
      })
      .meta({ description: APPLIES_ABOUT, example: EXAMPLE_APPLIES }),
    send: z.enum(SENT).meta({ description: SEND_ABOUT }),
    timeout_ms: z.int().meta({ description: TIMEOUT_ABOUT, example: 300 }),
    on_failure: z.enum(ON_FAILURE).meta({ description: ON_FAILURE_ABOUT }),
    cache_seconds: z.int().meta({ description: CACHE_ABOUT, example: 0 }),
    order: z.int().meta({ description: ORDER_ABOUT, example: 0 }),
    enabled: z.boolean().meta({ description: ENABLED_ABOUT }),
    version: version(),
    created_at: timestamp('When the policy was created.'),
    updated_at: timestamp('When the policy was last changed.'),
  })
  .meta({ id: 'Policy' });
export type PolicyView = z.output<typeof policySchema>;

export const policyPageSchema = pageOf('PolicyPage', policySchema);

const NAME = 'must be 1 to 63 lower-case letters, digits and hyphens, a letter first, such as dlp';
const name = z.string(NAME).regex(/^[a-z][a-z0-9-]{0,62}$/, NAME);

const url = z
  .string(`must be a URL such as ${EXAMPLE_URL}`)
  .max(2_048, 'must be 2,048 characters at most')
  .transform((text, context): string => {
    const result = checkWebhookUrl(text);
    if (result.url !== undefined) return result.url;
    context.addIssue({ code: 'custom', message: result.problem });
    return z.NEVER;
  });

const SECRET =
  'must be whsec_ and the base64 of 24 to 64 bytes; make one: echo "whsec_$(openssl rand -base64 32)"';
const secret = z.string(SECRET).refine((text) => {
  const [, base64] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  if (base64 === undefined) return false;
  const key = Buffer.from(base64, 'base64');
  return key.length >= 24 && key.length <= 64 && key.toString('base64') === base64;
}, SECRET);

/** At least one: an empty list would apply to no call, and look like one that applies to all. */
function some<T extends z.ZodType>(item: T, what: string) {
  const remedy = `must be a list of one or more ${what}; leave it out to limit nothing`;
  return z.array(item, remedy).min(1, remedy).max(100, 'must not have more than 100 entries');
}

const teams = some(searchText('must be the name or the id of a team'), 'teams');
const keys = some(searchText('must be the ID of a key, or team/name'), 'keys');
const models = modelPatterns.refine(
  (patterns) => patterns.length > 0,
  'must be a list of one or more names of models; leave it out to limit nothing',
);

const appliesTo = z
  .strictObject(
    {
      teams: teams
        .nullish()
        .default(null)
        .meta({ description: TEAMS_ABOUT, example: ['support'] }),
      keys: keys
        .nullish()
        .default(null)
        .meta({ description: KEYS_ABOUT, example: ['search/ci'] }),
      models: models
        .nullish()
        .default(null)
        .meta({ description: MODELS_ABOUT, example: ['gpt-5*'] }),
    },
    'must be an object with teams, keys and models',
  )
  .meta({ id: 'PolicyScope', example: { teams: ['support'] } });
export type PolicyScope = z.output<typeof appliesTo>;

const whole = (from: number, to: number, remedy = `must be an integer from ${from} to ${to}`) =>
  z.int(remedy).min(from, remedy).max(to, remedy);
const timeout = whole(10, 30_000);
const cacheSeconds = whole(0, 86_400);
const order = whole(-1_000, 1_000);

const about = {
  name: { description: 'A name for it, also in metrics and rejections.', example: 'dlp' },
  url: { description: URL_ABOUT, example: EXAMPLE_URL },
  secret: { description: SECRET_ABOUT, example: EXAMPLE_SECRET },
  appliesTo: { description: APPLIES_ABOUT, example: { teams: ['support'] } },
  timeout: { description: TIMEOUT_ABOUT, example: 300 },
  cache: { description: CACHE_ABOUT, example: 0 },
  order: { description: ORDER_ABOUT, example: 0 },
};

/** `POST /admin/v1/policies`, `postern policies create` and a file for `postern apply`. */
export const newPolicySchema = z
  .strictObject({
    name: name.meta(about.name),
    url: url.meta(about.url),
    secret: secret.meta(about.secret),
    applies_to: appliesTo.default({ teams: null, keys: null, models: null }).meta(about.appliesTo),
    send: oneOf(SENT).default('head').meta({ description: SEND_ABOUT }),
    timeout_ms: timeout.default(300).meta(about.timeout),
    on_failure: oneOf(ON_FAILURE).default('reject').meta({ description: ON_FAILURE_ABOUT }),
    cache_seconds: cacheSeconds.default(0).meta(about.cache),
    order: order.default(0).meta(about.order),
    enabled: flag().default(true).meta({ description: ENABLED_ABOUT }),
  })
  .meta({ id: 'NewPolicy', example: { name: 'dlp', url: EXAMPLE_URL, secret: EXAMPLE_SECRET } });
export type NewPolicy = z.output<typeof newPolicySchema>;

/** `PATCH /admin/v1/policies/:id` */
export const policyChangeSchema = z
  .strictObject({
    name: name.optional().meta(about.name),
    url: url.optional().meta(about.url),
    secret: secret.optional().meta(about.secret),
    applies_to: appliesTo.optional().meta(about.appliesTo),
    send: oneOf(SENT).optional().meta({ description: SEND_ABOUT }),
    timeout_ms: timeout.optional().meta(about.timeout),
    on_failure: oneOf(ON_FAILURE).optional().meta({ description: ON_FAILURE_ABOUT }),
    cache_seconds: cacheSeconds.optional().meta(about.cache),
    order: order.optional().meta(about.order),
    enabled: flag().optional().meta({ description: ENABLED_ABOUT }),
  })
  .meta({ id: 'PolicyChange', example: { enabled: false } });
export type PolicyChange = z.output<typeof policyChangeSchema>;

/** A policy in a path. It is not validated: anything that names no policy is not found. */
export const policyInPath = z.string().meta({ description: 'Name or ID of the policy.', example: 'dlp' });

const ENDPOINT = 'must be a path such as /v1/chat/completions';
const BODY = `must be text of ${MAX_TESTED / 1_024} KiB at most`;
const MODEL = 'must be the name of a model';

/** `POST /admin/v1/policies/:id/test` */
export const testedCallSchema = z
  .strictObject({
    key: searchText('must be the ID of a key, or team/name').nullish().default(null).meta({
      description: 'The key of the call: its ID, or `team/name`; absent: `team_id` and `key_id` are null.',
      example: 'search/ci',
    }),
    endpoint: z
      .string(ENDPOINT)
      .regex(/^\/[\x21-\x7e]{0,1023}$/, ENDPOINT)
      .default('/v1/chat/completions')
      .meta({ description: 'Path of the call.', example: '/v1/chat/completions' }),
    model: z
      .string(MODEL)
      .min(1, MODEL)
      .max(1_024, MODEL)
      .refine((text) => !UNPRINTABLE.test(text), MODEL)
      .nullish()
      .default(null)
      .meta({ description: 'Model of the call.', example: 'gpt-5-mini' }),
    end_user: searchText()
      .nullish()
      .default(null)
      .meta({ description: 'End user of the call.', example: 'u-17' }),
    body: z
      .string(BODY)
      .refine((text) => Buffer.byteLength(text) <= MAX_TESTED, BODY)
      .default('')
      .meta({
        description: 'Body of the call, which is sent with `send: body`. It is neither stored nor logged.',
        example: '{"model":"gpt-5-mini","messages":[]}',
      }),
  })
  .meta({ id: 'TestedCall', example: { model: 'gpt-5-mini', body: '{"model":"gpt-5-mini","messages":[]}' } });
export type TestedCall = z.output<typeof testedCallSchema>;

/** What is wrong with a receiver, for programs. */
export const FAILURES = [...RECEIVER_ERRORS, 'response_too_large', 'invalid_decision'] as const;

export const policyTestSchema = z
  .strictObject({
    ok: z.boolean().meta({ description: 'True if the receiver has decided, however it did.', example: true }),
    code: z.enum(['ok', ...FAILURES]).meta({ description: 'The result, for programs.' }),
    message: z.string().meta({
      description: 'The result in one sentence, with the remedy.',
      example: 'OK: the call would be rejected.',
    }),
    decision: z
      .strictObject({
        allow: z.boolean().meta({ description: 'Whether the call would be forwarded.', example: false }),
        code: z.string().nullable().meta({
          description: 'Why not, for programs; null if it would.',
          example: 'pii_found',
        }),
        message: z.string().nullable().meta({
          description: 'Why not, in words; null if it would.',
          example: 'The request contains a credit card number.',
        }),
        tags: z
          .record(z.string(), z.string())
          .nullable()
          .meta({ description: 'Tags that the row of the call would get; null: none.', example: null }),
      })
      .nullable()
      .meta({ description: 'The decision; null if there is none.' }),
    duration_ms: z.number().meta({ description: 'Milliseconds that the test took.', example: 12.5 }),
  })
  .meta({ id: 'PolicyTest' });
export type PolicyTestResult = z.output<typeof policyTestSchema>;
