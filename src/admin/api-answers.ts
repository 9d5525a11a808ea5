import { z } from 'zod';
import { type AuditView } from '../audit/audit.reader.js';
import { ACTIONS, SUBJECT_TYPES } from '../audit/record-change.js';
import { ENDPOINT_RULES, IDEMPOTENCY_MODES } from '../keys/gateway-key.entity.js';
import type { KeyView } from '../keys/key-view.js';
import type { TeamView } from '../teams/team-view.js';
import type { ProbeResult } from '../providers/provider-probe.js';
import type { ProviderView } from '../providers/provider-view.js';
import { PROVIDER_AUTHS } from '../providers/provider.js';
import { OUTCOMES } from '../request-log/request-log.entity.js';
import type { RequestView } from '../requests/request-view.js';
import type { UsageView } from '../requests/usage.service.js';

/**
 * What the admin API answers, for its OpenAPI document. `satisfies` holds each to the type that the code answers with;
 * a test holds them to what a running gateway answers.
 */

const uuid = () => z.uuid();
const time = (about?: string) => z.iso.datetime({ offset: true }).meta({ description: about });
const text = (about?: string) => z.string().meta({ description: about });
const count = (about?: string) => z.int().meta({ description: about });

const Team = z.strictObject({
  id: uuid(),
  name: text(),
  disabled: z.boolean().meta({ description: 'All keys of a disabled team are refused.' }),
  version: count('Goes up with every change.'),
  created_at: time(),
}) satisfies z.ZodType<TeamView>;

const Key = z.strictObject({
  id: uuid(),
  name: text('Once per team, revoked keys included.'),
  team: text("The team's name."),
  team_id: uuid(),
  prefix: text('The first 12 characters of the newest secret.'),
  created_at: time(),
  expires_at: time('Its end; null: none.').nullable(),
  last_used_at: time('When any of its secrets was last used, some seconds late.').nullable(),
  revoked_at: time('Since when it is ended for good.').nullable(),
  disabled: z.boolean(),
  providers: z.array(z.string()).nullable().meta({ description: 'Names of those it may use; null: all.' }),
  endpoints: z.enum(ENDPOINT_RULES),
  idempotency: z.enum(IDEMPOTENCY_MODES),
  version: count('Goes up with every change.'),
}) satisfies z.ZodType<KeyView>;

const IssuedKey = Key.extend({
  key: text('The secret, in this answer and never again: only its digest is stored.'),
});

const Provider = z.strictObject({
  id: uuid().nullable().meta({ description: 'null for the one of PROVIDER_URL.' }),
  name: text('What stands in /p/<name>/.'),
  url: text(),
  auth: z.enum(PROVIDER_AUTHS).meta({ description: 'How its secret is sent.' }),
  secret_state: z.enum(['sealed', 'none', 'unreadable']).meta({
    description: 'unreadable: sealed with a master key that is not here. The secret itself is never shown.',
  }),
  default: z.boolean().meta({ description: 'Calls to /v1 go to it.' }),
  enabled: z.boolean(),
  source: z.enum(['stored', 'environment']),
  version: count('Goes up with every change.').nullable(),
  created_at: time().nullable(),
  updated_at: time().nullable(),
}) satisfies z.ZodType<ProviderView>;

const Probe = z.strictObject({
  ok: z.boolean(),
  code: z.enum([
    'ok',
    'name_not_resolved',
    'refused',
    'unreachable',
    'timeout',
    'tls',
    'forbidden_address',
    'not_http',
    'unauthorized',
    'not_found',
    'redirect',
    'rate_limited',
    'provider_error',
    'unexpected_status',
  ]),
  message: text('One sentence with the remedy.'),
  status: count("Of the provider's answer; null when there was none.").nullable(),
  duration_ms: z.number(),
}) satisfies z.ZodType<ProbeResult>;

const figure = () => count("The provider's own figure; null when it gave none.").nullable();

const Request = z.strictObject({
  id: uuid().meta({ description: 'Also the x-gateway-request-id of the answer.' }),
  started_at: time(),
  recorded_at: time('When Postgres got the row.'),
  team_id: uuid(),
  key_id: uuid(),
  provider: text(),
  method: text(),
  path: text('Without the query.').nullable(),
  model: text().nullable(),
  streamed: z.boolean(),
  status: count('What the client was sent.').nullable(),
  outcome: z.enum(OUTCOMES),
  error_code: text().nullable(),
  request_bytes: count().nullable(),
  response_bytes: count().nullable(),
  ttfb_ms: z.number().nullable(),
  duration_ms: z.number().nullable(),
  prompt_tokens: figure(),
  completion_tokens: figure(),
  cached_tokens: figure(),
  reasoning_tokens: figure(),
  provider_request_id: text().nullable(),
  idempotency_key: text().nullable(),
  sdk_retry_count: count().nullable(),
  client_ip: text().nullable(),
  user_agent: text().nullable(),
}) satisfies z.ZodType<RequestView>;

const Usage = z.strictObject({
  day: text('UTC, such as 2031-01-31. Here as the following five when it was asked for.').optional(),
  hour: text('UTC, such as 2031-01-31T12:00:00Z.').optional(),
  team: text('null when there is no such team any more.').nullable().optional(),
  team_id: uuid().optional(),
  key: text('null when there is no such key any more.').nullable().optional(),
  key_id: uuid().optional(),
  provider: text().optional(),
  model: text().nullable().optional(),
  calls: count(),
  errors: count(),
  prompt_tokens: count(),
  completion_tokens: count(),
  cached_tokens: count(),
  reasoning_tokens: count(),
  request_bytes: count(),
  response_bytes: count(),
}) satisfies z.ZodType<UsageView>;

const settings = () => z.record(z.string(), z.unknown()).nullable();

const AuditEntry = z.strictObject({
  id: uuid(),
  at: time(),
  actor: text('admin-token, cli:<user of the operating system>, or start for the first team and key.'),
  client_ip: text('Where an admin call came from; null for commands.').nullable(),
  action: z.enum(ACTIONS),
  subject_type: z.enum(SUBJECT_TYPES),
  subject_id: uuid(),
  subject_name: text('As it was called then.'),
  before: settings().meta({
    description: 'What differed before; everything of what was removed; null: new.',
  }),
  after: settings().meta({ description: 'What differs now; everything of what is new; null: removed.' }),
}) satisfies z.ZodType<AuditView>;

const Fault = z.strictObject({
  error: z.strictObject({
    message: text('For people, with the remedy.'),
    code: text('For programs, such as invalid_request, not_found or conflict.'),
    details: z.array(z.strictObject({ field: text(), message: text() })),
  }),
});

function pageOf<T extends z.ZodType>(item: T) {
  return z.strictObject({
    data: z.array(item),
    next_cursor: text('The cursor of the next page; null on the last.').nullable(),
  });
}

/** By their names in the document. */
export const ANSWERS = {
  Team,
  TeamPage: pageOf(Team),
  Key,
  KeyPage: pageOf(Key),
  IssuedKey,
  Provider,
  ProviderPage: pageOf(Provider),
  Probe,
  Request,
  RequestPage: pageOf(Request),
  Usage,
  UsagePage: pageOf(Usage),
  AuditEntry,
  AuditPage: pageOf(AuditEntry),
  Fault,
} as const;
export type AnswerName = keyof typeof ANSWERS;
