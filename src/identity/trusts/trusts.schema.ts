import { z } from 'zod';
import {
  flag,
  name,
  oneOf,
  pageOf,
  paging,
  searchText,
  shownId,
  timestamp,
  version,
} from '../../admin/fields.schema.js';
import { isNetwork, parseCidrList } from '../../platform/cidr.js';
import { issuerProblem } from './issuer-url.js';
import { keysProblem } from './jwks.js';
import { type ClaimConditions, type PublicKeys, TRUST_PRESETS } from './trust.entity.js';

const MAX_NAMES = 20;
const MAX_VALUES = 50;
const MAX_TEXT = 512;

const KEY_ABOUT = 'The key whose tokens are issued: its ID, or `team/name`. Limits of the key apply to them.';
const PRESET_ABOUT =
  'What the conditions must name, and the issuer if there is only one: `github`, `gitlab`, `kubernetes`, `aws`, `google`, `azure`, or `oidc` for any other.';
const ISSUER_ABOUT = 'The `iss` of accepted identity tokens, compared byte for byte.';
const AUDIENCE_ABOUT = 'The only `aud` of accepted identity tokens.';
const JWKS_ABOUT =
  'Public keys of the issuer, for one that Postern cannot reach; null: they are read from the issuer.';
const CLAIMS_ABOUT =
  'Accepted values by claim: each claim must have one of its values. A value may end with `*` after `:` or `/`. A name that begins with `/` is a JSON pointer.';
const ANY_REF_ABOUT =
  'Of GitHub and GitLab: whether every branch, tag, environment and workflow may use the trust.';
const CIDRS_ABOUT = 'Networks that may use the trust; null: all.';
const MINUTES_ABOUT = 'How long a token works, in minutes, from 5 to 60.';
const LONGEST_ABOUT = 'Longest lifetime of an accepted identity token, in minutes.';
const MAX_LIVE_ABOUT = 'How many tokens of the trust may work at a time.';
const ENABLED_ABOUT = 'If false, none of its tokens works, and none is issued.';

const EXAMPLE_CLAIMS = { repository_id: ['821093847'], ref: ['refs/heads/main', 'refs/tags/*'] };
const EXAMPLE_ISSUER = 'https://token.actions.githubusercontent.com';
const EXAMPLE_AUDIENCE = 'https://gateway.example.com';

const shownClaims = z.record(
  z.string(),
  z.array(z.union([z.string(), z.number(), z.boolean()])),
) as unknown as z.ZodType<ClaimConditions>;
const shownKeys = z.looseObject({}) as unknown as z.ZodType<PublicKeys>;

/** A trust as the API shows it. */
export const trustSchema = z
  .strictObject({
    id: shownId('the trust'),
    name: z.string().meta({ description: 'Unique name of the trust.', example: 'api-ci' }),
    key: z.string().meta({ description: 'The key, as `team/name`.', example: 'search/ci' }),
    key_id: shownId('its key'),
    preset: z.enum(TRUST_PRESETS).meta({ description: PRESET_ABOUT }),
    issuer: z.string().meta({ description: ISSUER_ABOUT, example: EXAMPLE_ISSUER }),
    audience: z.string().meta({ description: AUDIENCE_ABOUT, example: EXAMPLE_AUDIENCE }),
    jwks: shownKeys.nullable().meta({ description: JWKS_ABOUT, example: null }),
    claims: shownClaims.meta({ description: CLAIMS_ABOUT, example: EXAMPLE_CLAIMS }),
    any_ref: z.boolean().meta({ description: ANY_REF_ABOUT, example: false }),
    cidrs: z
      .array(z.string())
      .nullable()
      .meta({ description: CIDRS_ABOUT, example: ['10.0.0.0/8'] }),
    token_minutes: z.int().meta({ description: MINUTES_ABOUT, example: 60 }),
    longest_jwt_minutes: z.int().meta({ description: LONGEST_ABOUT, example: 120 }),
    max_live: z.int().meta({ description: MAX_LIVE_ABOUT, example: 1000 }),
    enabled: z.boolean().meta({ description: ENABLED_ABOUT, example: true }),
    created_at: timestamp('When the trust was created.'),
    last_used_at: timestamp(
      'When it last issued a token, updated with a delay of some seconds; null: never.',
    ).nullable(),
    live_tokens: z.int().meta({ description: 'How many of its tokens work now.', example: 3 }),
    version: version(),
  })
  .meta({ id: 'Trust' });
export type TrustView = z.output<typeof trustSchema>;

export const trustPageSchema = pageOf('TrustPage', trustSchema);

const CLAIMS = 'must be an object of claims with their accepted values, such as {"ref": ["refs/heads/main"]}';
const EXACT = 'must not be a number beyond 2^53, because such numbers are not exact in JSON';
const VALUE = 'must be text, a number, true or false';

/** Half of a surrogate pair is no character, and jsonb cannot hold it. */
const text = (message: string) =>
  z
    .string()
    .min(1, message)
    .max(MAX_TEXT, message)
    .refine((value) => value.isWellFormed(), message);

/** A larger one is read as its neighbour, which may be the ID of somebody else. */
const number = z.number().refine((value) => Math.abs(value) <= Number.MAX_SAFE_INTEGER, EXACT);

const conditions = z
  .record(
    text(CLAIMS),
    z
      .array(z.union([text(VALUE), number, z.boolean()], VALUE), 'must be a list of accepted values')
      .min(1, 'must have at least one accepted value')
      .max(MAX_VALUES, `must not have more than ${MAX_VALUES} values`),
    CLAIMS,
  )
  .refine((all) => Object.keys(all).length <= MAX_NAMES, `must not name more than ${MAX_NAMES} claims`)
  .transform((all): ClaimConditions => all);

/** A record of zod drops this name, and a condition that is dropped lets others in. */
const claims = z.preprocess((all, context) => {
  if (all instanceof Object && Object.hasOwn(all, '__proto__'))
    context.addIssue({ code: 'custom', message: 'must not name a claim __proto__' });
  return all;
}, conditions);

const CIDRS = 'must be a list of networks or addresses, such as ["10.0.0.0/8"]';
const HOST_BITS = 'must name networks by their first address: 10.1.2.0/24, not 10.1.2.3/24';
const cidrs = z
  .array(z.string(CIDRS), CIDRS)
  .min(1, `${CIDRS}; leave it out to allow all`)
  .max(100, 'must not have more than 100 networks')
  .refine((all) => all.every((one) => parseCidrList(one)?.length === 1), CIDRS)
  .transform((all) => all.map((one) => parseCidrList(one)![0]!))
  .refine((all) => all.every(isNetwork), HOST_BITS);

const issuer = z.string('must be a URL').superRefine((text, context) => {
  const message = issuerProblem(text);
  if (message !== null) context.addIssue({ code: 'custom', message });
});

const AUDIENCE = `must be text of 1 to ${MAX_TEXT} visible ASCII characters`;
const audience = z.string(AUDIENCE).regex(/^[\x21-\x7e]{1,512}$/, AUDIENCE);

const jwks = z
  .unknown()
  .superRefine((value, context) => {
    const message = keysProblem(value);
    if (message !== null) context.addIssue({ code: 'custom', message });
  })
  .transform((value) => value as PublicKeys);

const minutes = (from: number, to: number) => {
  const remedy = `must be an integer from ${from} to ${to}`;
  return z.int(remedy).min(from, remedy).max(to, remedy);
};

const key = searchText('must be the ID of a key, or team/name');
const KEY_META = { description: KEY_ABOUT, example: 'search/ci' };

/** `POST /admin/v1/trusts`, `postern trusts create` and a file for `postern apply`. */
export const newTrustSchema = z
  .strictObject({
    name: name().meta({ description: 'Unique name of the trust, which exchanges name.', example: 'api-ci' }),
    key: key.meta(KEY_META),
    preset: oneOf(TRUST_PRESETS).default('oidc').meta({ description: PRESET_ABOUT, example: 'github' }),
    issuer: issuer
      .nullish()
      .default(null)
      .meta({ description: `${ISSUER_ABOUT} Absent: that of the preset.`, example: EXAMPLE_ISSUER }),
    audience: audience
      .nullish()
      .default(null)
      .meta({ description: `${AUDIENCE_ABOUT} Absent: GATEWAY_URL.`, example: EXAMPLE_AUDIENCE }),
    jwks: jwks.nullish().default(null).meta({ description: JWKS_ABOUT, example: null }),
    claims: claims.meta({ description: CLAIMS_ABOUT, example: EXAMPLE_CLAIMS }),
    any_ref: flag().default(false).meta({ description: ANY_REF_ABOUT }),
    cidrs: cidrs
      .nullish()
      .default(null)
      .meta({ description: CIDRS_ABOUT, example: ['10.0.0.0/8'] }),
    token_minutes: minutes(5, 60).default(60).meta({ description: MINUTES_ABOUT, example: 60 }),
    longest_jwt_minutes: minutes(1, 1_440)
      .nullish()
      .default(null)
      .meta({
        description: `${LONGEST_ABOUT} Absent: 120; 1440 for GitLab, Kubernetes and Azure.`,
        example: 120,
      }),
    max_live: minutes(1, 100_000).default(1_000).meta({ description: MAX_LIVE_ABOUT, example: 1000 }),
    enabled: flag().default(true).meta({ description: ENABLED_ABOUT }),
  })
  .meta({
    id: 'NewTrust',
    example: { name: 'api-ci', key: 'search/ci', preset: 'github', claims: EXAMPLE_CLAIMS },
  });
export type NewTrust = z.output<typeof newTrustSchema>;

/** `PATCH /admin/v1/trusts/:name`; a trust keeps its preset, because its conditions were checked for it. */
export const trustChangeSchema = z
  .strictObject({
    name: name().optional().meta({ description: 'New unique name of the trust.', example: 'api-ci' }),
    key: key.optional().meta(KEY_META),
    issuer: issuer.optional().meta({ description: ISSUER_ABOUT, example: EXAMPLE_ISSUER }),
    audience: audience.optional().meta({ description: AUDIENCE_ABOUT, example: EXAMPLE_AUDIENCE }),
    jwks: jwks.nullable().optional().meta({ description: JWKS_ABOUT, example: null }),
    claims: claims.optional().meta({ description: CLAIMS_ABOUT, example: EXAMPLE_CLAIMS }),
    any_ref: flag().optional().meta({ description: ANY_REF_ABOUT }),
    cidrs: cidrs
      .nullable()
      .optional()
      .meta({ description: CIDRS_ABOUT, example: ['10.0.0.0/8'] }),
    token_minutes: minutes(5, 60).optional().meta({ description: MINUTES_ABOUT, example: 60 }),
    longest_jwt_minutes: minutes(1, 1_440).optional().meta({ description: LONGEST_ABOUT, example: 120 }),
    max_live: minutes(1, 100_000).optional().meta({ description: MAX_LIVE_ABOUT, example: 1000 }),
    enabled: flag().optional().meta({ description: ENABLED_ABOUT }),
  })
  .meta({ id: 'TrustChange', example: { enabled: false } });
export type TrustChange = z.output<typeof trustChangeSchema>;

/** `GET /admin/v1/trusts` */
export const trustFilterSchema = z.strictObject(paging);

/** A trust in a path. It is not validated: anything that names no trust is not found. */
export const trustInPath = z.string().meta({ description: 'Name or ID of the trust.', example: 'api-ci' });

const failureSchema = z
  .strictObject({
    id: shownId('the failure'),
    at: timestamp('When the token was rejected.'),
    reason: z.string().meta({
      description: 'What was not met.',
      example: 'the claim ref does not have an accepted value',
    }),
    claims: z.record(z.string(), z.unknown()).meta({
      description: '`iss`, `aud` and the claims of the token that the conditions name, and no others.',
      example: { iss: 'https://token.actions.githubusercontent.com', ref: 'refs/pull/7/merge' },
    }),
  })
  .meta({ id: 'TrustFailure' });
export type TrustFailureView = z.output<typeof failureSchema>;

export const trustFailuresSchema = z
  .strictObject({
    data: z
      .array(failureSchema)
      .meta({ description: 'The last 50, newest first: of tokens that the issuer has signed.' }),
  })
  .meta({ id: 'TrustFailures' });
export type TrustFailuresView = z.output<typeof trustFailuresSchema>;

const TOKEN = 'must be an identity token';
/** `POST /admin/v1/trusts/:name/test` */
export const testedTokenSchema = z
  .strictObject({
    token: z
      .string(TOKEN)
      .min(1, TOKEN)
      .max(16_384, TOKEN)
      .meta({ description: 'An identity token. It is neither stored nor logged.', example: 'eyJhbGciOi…' }),
  })
  .meta({ id: 'TestedToken', example: { token: 'eyJhbGciOi…' } });
export type TestedToken = z.output<typeof testedTokenSchema>;

const tokenCheckSchema = z
  .strictObject({
    name: z.string().meta({ description: 'What was checked.', example: 'claims.ref' }),
    met: z.boolean().meta({ description: 'Whether it is met.', example: false }),
    detail: z.string().nullable().meta({
      description: 'What was not met; null if it is met.',
      example: 'the claim ref does not have an accepted value',
    }),
  })
  .meta({ id: 'TokenCheck' });
export type TokenCheck = z.output<typeof tokenCheckSchema>;

export const tokenVerdictSchema = z
  .strictObject({
    accepted: z.boolean().meta({ description: 'Whether it would be exchanged.', example: false }),
    reason: z
      .string()
      .nullable()
      .meta({ description: 'Reason for programs; null if it is accepted.', example: 'claim' }),
    detail: z.string().nullable().meta({
      description: 'The first thing that was not met; null if it is accepted.',
      example: 'the claim ref does not have an accepted value',
    }),
    subject: z.string().nullable().meta({
      description: 'Its `sub`; null if it is not accepted.',
      example: 'repo:acme/api:ref:refs/heads/main',
    }),
    checks: z.array(tokenCheckSchema).meta({
      description:
        'What was checked, in this order: its signature only if the trust is enabled, and nothing else of a token that cannot be read.',
    }),
  })
  .meta({ id: 'TokenVerdict' });
export type TokenVerdict = z.output<typeof tokenVerdictSchema>;
