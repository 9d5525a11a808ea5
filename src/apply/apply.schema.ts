import { z } from 'zod';
import { EXAMPLE_ID, EXAMPLE_TIME, flag, oneOf, time } from '../admin/fields.schema.js';
import { newGroupSchema } from '../groups/groups.schema.js';
import { newTrustSchema } from '../identity/trusts/trusts.schema.js';
import { newKeySchema } from '../keys/keys.schema.js';
import { installationChangeSchema } from '../limits/limits.schema.js';
import { newPolicySchema } from '../policies-by-url/policies.schema.js';
import { newPriceSchema } from '../pricing/prices.schema.js';
import { ON_DISCONNECT, ON_DISCONNECT_ABOUT } from '../providers/on-disconnect.js';
import { newProviderSchema } from '../providers/providers.schema.js';
import { newRouteSchema } from '../routes/routes.schema.js';
import { byKind, newSinkMembers } from '../sinks/sinks.schema.js';
import { newTeamSchema } from '../teams/teams.schema.js';
import { newWebhookSchema } from '../webhooks/webhooks.schema.js';

/** Largest body of a request. */
export const MAX_BYTES = '4mb';

const stays = (what: string) =>
  flag()
    .optional()
    .meta({
      description: `${what} Absent: it stays as it is, so that a stop in an emergency is not undone.`,
      example: false,
    });

/** Its teams name it. */
const group = newGroupSchema.omit({ teams: true }).meta({ id: 'AppliedGroup', example: { name: 'dev' } });

const team = z
  .strictObject({ ...newTeamSchema.shape, disabled: stays('All keys of a disabled team are rejected.') })
  .meta({ id: 'AppliedTeam', example: { name: 'search' } });

const key = z
  .strictObject({
    ...newKeySchema.shape,
    expires_at: time().nullish().default(null).meta({
      description: 'Expiry time; null or absent: the key never expires. A new one must be in the future.',
      example: '2030-01-31T12:00:00.000Z',
    }),
    secret: flag().default(true).meta({
      description:
        'Of a new key: whether it gets a secret. Without one, only tokens that are issued for the key work: see trusts.',
    }),
    disabled: stays('Calls with a disabled key are rejected.'),
  })
  .meta({ id: 'AppliedKey', example: { team: 'search', name: 'ci' } });

const trust = z
  .strictObject({
    ...newTrustSchema.shape,
    enabled: stays('None of the tokens of a disabled trust works.'),
  })
  .meta({
    id: 'AppliedTrust',
    example: {
      name: 'api-ci',
      key: 'search/ci',
      preset: 'oidc',
      issuer: 'https://login.example.com',
      claims: { sub: ['job'] },
    },
  });

const STORED_SECRET = 'must be text, or {"stored": true} to keep what is stored';
const STORED_URL = 'must be text, or {"stored": "<ID of the webhook>"} for one that exists';

/** In place of what is secret, so that a document needs no secrets. */
export const asStored = z
  .strictObject({ stored: z.literal(true).meta({ description: 'It stays as it is stored.' }) })
  .meta({ id: 'AsStored', example: { stored: true } });
export type AsStored = z.output<typeof asStored>;

/** The URL identifies a webhook, and may be secret as a whole. */
export const storedWebhook = z
  .strictObject({
    stored: z.uuid().meta({ description: 'ID of the webhook, whose URL stays.', example: EXAMPLE_ID }),
  })
  .meta({ id: 'StoredWebhook' });

/** @param remedy for objects of another form */
function orStored<S extends z.ZodType, R extends z.ZodType>(schema: S, reference: R, remedy: string) {
  return z.union([schema, reference], {
    error: ({ input, errors }) =>
      typeof input === 'object' && input !== null
        ? remedy
        : (errors as z.core.$ZodIssue[][])[0]?.[0]?.message,
  });
}

/**
 * A list in which no object occurs twice.
 *
 * @param identity members that tell its objects apart
 */
function list<T extends z.ZodType>(item: T, noun: string, identity: readonly string[]) {
  const nouns = noun.replace(/([^aeiou])y$/, '$1ie') + 's';
  const check = (items: readonly unknown[], context: z.core.$RefinementCtx) => {
    const seen = new Set<string>();
    for (const [i, each] of items.entries()) {
      const values = identity.map((name) => (each as Record<string, unknown> | null)?.[name]);
      if (typeof values[0] !== 'string') continue;
      const id = JSON.stringify(values);
      const message = `this ${noun} is listed more than once; remove one of them`;
      if (seen.has(id)) context.addIssue({ code: 'custom', path: [i, identity.at(-1)!], message });
      seen.add(id);
    }
  };
  return z
    .array(item, `must be a list of ${nouns}; leave it out to change none`)
    .superRefine(check, { when: ({ value }) => Array.isArray(value) })
    .optional()
    .meta({ description: `The ${nouns}. Absent: none is changed.` });
}

/** The members of a sink. */
export const sinkMembers = {
  ...newSinkMembers,
  from: newSinkMembers.from.meta({
    description: 'Of a new sink: only rows recorded at this time or later; absent: all rows of the log.',
    example: EXAMPLE_TIME,
  }),
  enabled: stays('Nothing is sent to a disabled sink, and old rows are deleted all the same.'),
};

/** The members of a policy. */
export const policyMembers = {
  ...newPolicySchema.shape,
  enabled: stays('A disabled policy is not asked.'),
};

/**
 * The document that is applied. What is secret may stay as it is stored; the file for the command line has references.
 *
 * @param secret of a provider
 * @param url of a webhook
 */
export function documentOf<
  S extends z.ZodType,
  U extends z.ZodType,
  P extends z.ZodType,
  K extends z.ZodType,
>(secret: S, url: U, policy: P, sink: K) {
  const provider = z.strictObject({
    ...newProviderSchema.shape,
    secret,
    enabled: stays('Calls to a disabled provider are rejected.'),
    on_disconnect: oneOf(ON_DISCONNECT)
      .optional()
      .meta({
        description:
          `${ON_DISCONNECT_ABOUT} Absent: it stays as it is; a new provider gets \`finish\` if its URL is that of Bedrock, ` +
          'Vertex AI or Gemini, which bill the whole response, otherwise `cancel`.',
      }),
  });
  return z.strictObject({
    installation: installationChangeSchema.optional().meta({
      description: 'Limits and budgets of all calls. Absent: they stay as they are.',
    }),
    groups: list(group, 'group', ['name']),
    teams: list(team, 'team', ['name']),
    providers: list(provider.meta({ id: 'AppliedProvider' }), 'provider', ['name']),
    routes: list(newRouteSchema, 'route', ['name']),
    prices: list(newPriceSchema, 'price', ['catalog', 'effective_from', 'model']),
    keys: list(key, 'key', ['team', 'name']),
    trusts: list(trust, 'trust', ['name']),
    webhooks: list(z.strictObject({ ...newWebhookSchema.shape, url }), 'webhook', ['format', 'url']),
    policies: list(policy, 'policy', ['name']),
    sinks: list(sink, 'sink', ['name']),
  });
}

const policy = z.strictObject({
  ...policyMembers,
  url: orStored(policyMembers.url, asStored, STORED_SECRET).meta(policyMembers.url.meta()!),
  secret: orStored(policyMembers.secret, asStored, STORED_SECRET).meta(policyMembers.secret.meta()!),
});

const { secret, url } = sinkMembers;
const sink = z.strictObject({
  ...sinkMembers,
  url: orStored(url, asStored, STORED_SECRET).meta(url.meta()!),
  secret: orStored(secret, asStored, STORED_SECRET).meta(secret.meta()!),
});

const documentSchema = documentOf(
  orStored(newProviderSchema.shape.secret, asStored, STORED_SECRET).meta(
    newProviderSchema.shape.secret.meta()!,
  ),
  orStored(newWebhookSchema.shape.url, storedWebhook, STORED_URL).meta(newWebhookSchema.shape.url.meta()!),
  policy.meta({
    id: 'AppliedPolicy',
    example: { name: 'dlp', url: { stored: true }, secret: { stored: true } },
  }),
  byKind(sink).meta({ id: 'AppliedSink' }),
).meta({
  id: 'ApplyDocument',
  example: { teams: [{ name: 'search' }] },
});
export type ApplyDocument = z.output<typeof documentSchema>;
export type Member = keyof ApplyDocument;
/** An object of a list, or what stands alone. */
export type Item<M extends Member> =
  NonNullable<ApplyDocument[M]> extends (infer T)[] ? T : NonNullable<ApplyDocument[M]>;

/** `POST /admin/v1/apply` */
export const applySchema = z
  .strictObject({
    document: documentSchema.meta({
      description:
        'The configuration. A named object is changed to match its entry exactly: absent members get their defaults.',
    }),
    dry_run: flag().default(false).meta({ description: 'Only return the plan.' }),
    prune: flag()
      .default(false)
      .meta({
        description:
          'Also end what the given lists do not name: keys are revoked, teams disabled and taken out of their group, the others removed. ' +
          'Keys that members have created for themselves stay.',
      }),
    return_secrets: flag().default(false).meta({
      description:
        'Return the secrets of new keys and webhooks, which are shown only once. Without it, a document with new ones is rejected.',
    }),
    plan_id: z.string().optional().meta({
      description: 'The plan of a dry run: if it has changed since, nothing is applied. Absent: any plan.',
      example: '6f1ed002ab5595859014ebf0951522d9',
    }),
  })
  .meta({ id: 'Apply', example: { document: { teams: [{ name: 'search' }] }, dry_run: true } });
export type Apply = z.output<typeof applySchema>;

const changeSchema = z
  .strictObject({
    action: z.enum(['create', 'update', 'delete']).meta({
      description: '`delete`: ended by `prune`. A key is revoked, a team disabled.',
    }),
    type: z.string().meta({ description: 'Type of the object, as in the audit log.', example: 'team' }),
    name: z.string().meta({ description: 'Name of the object; of a key, `team/name`.', example: 'search' }),
    fields: z
      .record(z.string(), z.strictObject({ before: z.unknown(), after: z.unknown() }))
      .meta({ description: 'Of an update: what differs. Values of secrets are not shown.' }),
  })
  .meta({ id: 'PlannedChange' });
export type PlannedChange = z.output<typeof changeSchema>;

const secretSchema = z
  .strictObject({
    type: z.enum(['key', 'webhook']).meta({ description: 'Type of the new object.' }),
    id: z
      .uuid()
      .meta({ description: 'ID of the new object.', example: '01890a5d-ac96-774b-bcce-b302099a8057' }),
    name: z
      .string()
      .meta({ description: 'Of a key `team/name`, of a webhook its whole URL.', example: 'search/ci' }),
    secret: z.string().meta({ description: 'Shown only in this response.', example: 'ptn_…' }),
  })
  .meta({ id: 'NewSecret' });
export type NewSecret = z.output<typeof secretSchema>;

export const appliedSchema = z
  .strictObject({
    dry_run: z.boolean().meta({ description: 'True if nothing was changed.' }),
    plan_id: z.string().meta({
      description: 'Identifies the plan.',
      example: '6f1ed002ab5595859014ebf0951522d9',
    }),
    plan: z.array(changeSchema).meta({ description: 'The changes, in order. Empty: nothing differs.' }),
    secrets: z.array(secretSchema).meta({ description: 'Secrets of new keys and webhooks.' }),
  })
  .meta({ id: 'Applied' });
export type Applied = z.output<typeof appliedSchema>;
