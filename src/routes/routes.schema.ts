import { z } from 'zod';
import { flag, oneOf, pageOf, shownId, timestamp, version } from '../admin/fields.schema.js';
import { PROVIDER_NAME } from '../providers/provider-name.js';
import { MAX_ATTEMPTS } from '../request-log/attempts.js';
import { DIALECTS, RETRY_CAUSES, type StoredTarget, STRATEGIES } from './route.entity.js';

/** Targets of a route: a bit mask has one bit for each. */
const MAX_TARGETS = 16;
const MAX_MODELS = 100;
const MAX_MODEL = 256;

const NAME = 'must be 1 to 63 characters of a-z 0-9 - _ and start with a letter or digit';
const TARGETS = `must be a list of 1 to ${MAX_TARGETS} targets, such as [{"provider": "openai"}]`;
const MODEL = `must be the name of a model: 1 to ${MAX_MODEL} printable characters`;
const MODELS = `must be an object of at most ${MAX_MODELS} model names: from what clients send to what this provider is sent`;
const ATTEMPTS = `must be an integer from 1 to ${MAX_ATTEMPTS}`;

const TARGETS_ABOUT = 'Providers, in order; a provider may occur more than once, with other models.';
const STRATEGY_ABOUT =
  '`order`: the first target that does not rest. `spread`: each session, else each key, has a target of its own among ' +
  'them, so that the prompt caches of the providers stay warm.';
const RETRY_ABOUT =
  'When a call is sent to another target. `connect`: no connection was made; `refused`: the provider responded with 429, ' +
  '503 or 529; `failed`: with 500, 502 or 504, or it closed the connection without a response: it may have run the call ' +
  'and bill it. Never after a timeout.';
const ATTEMPTS_ABOUT = 'Targets that a call is sent to at most.';
const DIALECT_ABOUT =
  'The API of the targets. `openai` and `anthropic` reject inference calls of the other API; `any` rejects none.';
const DEFAULT_ABOUT =
  'Calls to `/v1` use it, in place of a stored default provider. While PROVIDER_URL is set, that one is the default.';

const providerOf = z
  .string(NAME)
  .regex(PROVIDER_NAME, NAME)
  .meta({ description: 'Name of a provider.', example: 'openai' });
const model = z.string(MODEL).regex(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]{1,256}$/u, MODEL);

const target = z.strictObject({
  provider: providerOf,
  models: z
    .record(model, model, MODELS)
    .refine((models) => Object.keys(models).length <= MAX_MODELS, MODELS)
    .nullable()
    .default(null)
    .meta({
      description:
        'Names of models that this provider is sent in place of those in the request. Others are sent as they are.',
      example: { 'gpt-5.6': 'gpt-5.6-eu' },
    }),
});

const targets = z.array(target, TARGETS).min(1, TARGETS).max(MAX_TARGETS, TARGETS);
const retryOn = z
  .array(oneOf(RETRY_CAUSES), 'must be a list of connect, refused and failed')
  .transform((causes) => [...new Set(causes)]);
const maxAttempts = z.int(ATTEMPTS).min(1, ATTEMPTS).max(MAX_ATTEMPTS, ATTEMPTS);

const EXAMPLE_TARGETS = [{ provider: 'openai' }, { provider: 'azure', models: { 'gpt-5.6': 'gpt-5.6-eu' } }];

/** `POST /admin/v1/routes` */
export const newRouteSchema = z
  .strictObject({
    name: z
      .string(NAME)
      .regex(PROVIDER_NAME, NAME)
      .meta({ description: 'Used in `/p/<name>/`.', example: 'main' }),
    targets: targets.meta({ description: TARGETS_ABOUT, example: EXAMPLE_TARGETS }),
    strategy: oneOf(STRATEGIES).default('order').meta({ description: STRATEGY_ABOUT }),
    retry_on: retryOn
      .default(['connect', 'refused'])
      .meta({ description: RETRY_ABOUT, example: ['connect', 'refused'] }),
    max_attempts: maxAttempts.default(2).meta({ description: ATTEMPTS_ABOUT, example: 2 }),
    dialect: oneOf(DIALECTS).default('any').meta({ description: DIALECT_ABOUT }),
    default: flag().default(false).meta({ description: DEFAULT_ABOUT }),
  })
  .meta({ id: 'NewRoute', example: { name: 'main', targets: EXAMPLE_TARGETS } });
export type NewRoute = z.output<typeof newRouteSchema>;

/** `PATCH /admin/v1/routes/:name`; names stay, because keys refer to them. */
export const routeChangeSchema = z
  .strictObject({
    targets: targets.optional().meta({ description: TARGETS_ABOUT, example: EXAMPLE_TARGETS }),
    strategy: oneOf(STRATEGIES).optional().meta({ description: STRATEGY_ABOUT }),
    retry_on: retryOn.optional().meta({ description: RETRY_ABOUT, example: ['connect', 'refused'] }),
    max_attempts: maxAttempts.optional().meta({ description: ATTEMPTS_ABOUT, example: 2 }),
    dialect: oneOf(DIALECTS).optional().meta({ description: DIALECT_ABOUT }),
    default: flag().optional().meta({ description: DEFAULT_ABOUT }),
  })
  .meta({ id: 'RouteChange', example: { max_attempts: 3 } });
export type RouteChange = z.output<typeof routeChangeSchema>;

/** A route as the API shows it. */
export const routeSchema = z
  .strictObject({
    id: shownId('the route'),
    name: z.string().meta({ description: 'Used in `/p/<name>/`.', example: 'main' }),
    targets: z
      .array(
        z.strictObject({
          provider: z.string().meta({ description: 'Name of a provider.', example: 'openai' }),
          models: z
            .record(z.string(), z.string())
            .nullable()
            .meta({
              description: 'Names of models that it is sent in place of those in the request; null for none.',
              example: { 'gpt-5.6': 'gpt-5.6-eu' },
            }),
          resting_until: timestamp(
            'Until when it gets no calls, because it refused calls or failed; null if it gets calls. As the process that ' +
              'responds has seen it: each process watches its own calls.',
          ).nullable(),
        }),
      )
      .meta({ description: TARGETS_ABOUT }),
    strategy: z.enum(STRATEGIES).meta({ description: STRATEGY_ABOUT }),
    retry_on: z.array(z.enum(RETRY_CAUSES)).meta({ description: RETRY_ABOUT }),
    max_attempts: z.int().meta({ description: ATTEMPTS_ABOUT, example: 2 }),
    dialect: z.enum(DIALECTS).meta({ description: DIALECT_ABOUT }),
    default: z.boolean().meta({ description: DEFAULT_ABOUT }),
    version: version(),
    created_at: timestamp('When the route was added.'),
    updated_at: timestamp('When the route was last changed.'),
  })
  .meta({ id: 'Route' });
export type RouteView = z.output<typeof routeSchema>;
/** What is stored of a route. */
export type RouteContent = Omit<RouteView, 'targets'> & { targets: StoredTarget[] };

export const routePageSchema = pageOf('RoutePage', routeSchema);

export const routeName = z.string().meta({ description: 'Name of the route.', example: 'main' });
