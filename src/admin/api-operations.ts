import type { z } from 'zod';
import type { AnswerName } from './api-answers.js';
import { auditFilterSchema } from '../audit/audit.schema.js';
import {
  keyChangeSchema,
  keyFilterSchema,
  newKeySchema,
  revocationSchema,
  rotationSchema,
} from '../keys/keys.schema.js';
import { newProviderSchema, nothingSchema, providerChangeSchema } from '../providers/providers.schema.js';
import { exportSchema, requestFilterSchema } from '../requests/requests.schema.js';
import { newTeamSchema, teamChangeSchema, teamFilterSchema } from '../teams/teams.schema.js';
import { usageSchema } from '../requests/usage.schema.js';

/** What the OpenAPI document says of one route besides what the router knows. */
export interface Operation {
  /** The name of the method in a generated client. */
  operationId: string;
  tag: 'Teams' | 'Keys' | 'Providers' | 'Requests' | 'Usage' | 'Audit';
  summary: string;
  description?: string;
  query?: z.ZodObject;
  /** Name of the request schema in the document, its schema, an example. */
  body?: { name: string; schema: z.ZodObject; example: object; optional?: true };
  status: 200 | 201 | 204;
  /** null: no body, or none in JSON. */
  answer: AnswerName | null;
  /** Content types of an answer that is not JSON. */
  types?: readonly string[];
  /** Besides 400, 401, 413, 415 and 503, which any may have. */
  faults?: readonly (404 | 409)[];
  /** The answer carries an ETag. */
  tagged?: true;
  /** If-Match is honoured. */
  conditional?: true;
}

const EXPIRES_AT = '2093-01-31T12:00:00Z';
const change = { tagged: true, conditional: true, faults: [404, 409] } as const;

/** By method and path; a test compares this with the routes of the running gateway. */
export const OPERATIONS: Record<string, Operation> = {
  'GET /admin/v1/teams': {
    operationId: 'listTeams',
    tag: 'Teams',
    summary: 'Teams, newest first',
    query: teamFilterSchema,
    status: 200,
    answer: 'TeamPage',
  },
  'POST /admin/v1/teams': {
    operationId: 'createTeam',
    tag: 'Teams',
    summary: 'Make a team',
    body: { name: 'NewTeam', schema: newTeamSchema, example: { name: 'search' } },
    status: 201,
    answer: 'Team',
    tagged: true,
    faults: [409],
  },
  'GET /admin/v1/teams/{id}': {
    operationId: 'getTeam',
    tag: 'Teams',
    summary: 'One team',
    status: 200,
    answer: 'Team',
    tagged: true,
    faults: [404],
  },
  'PATCH /admin/v1/teams/{id}': {
    operationId: 'changeTeam',
    tag: 'Teams',
    summary: 'Rename, disable or enable a team',
    body: { name: 'TeamChange', schema: teamChangeSchema, example: { disabled: true } },
    status: 200,
    answer: 'Team',
    ...change,
  },
  'GET /admin/v1/keys': {
    operationId: 'listKeys',
    tag: 'Keys',
    summary: 'Keys, newest first',
    query: keyFilterSchema,
    status: 200,
    answer: 'KeyPage',
    faults: [404],
  },
  'POST /admin/v1/keys': {
    operationId: 'createKey',
    tag: 'Keys',
    summary: 'Issue a key',
    description: 'The answer holds the secret; it is never shown again.',
    body: {
      name: 'NewKey',
      schema: newKeySchema,
      example: { team: 'search', name: 'ci', expires_at: EXPIRES_AT },
    },
    status: 201,
    answer: 'IssuedKey',
    tagged: true,
    faults: [404, 409],
  },
  'GET /admin/v1/keys/{id}': {
    operationId: 'getKey',
    tag: 'Keys',
    summary: 'One key',
    status: 200,
    answer: 'Key',
    tagged: true,
    faults: [404],
  },
  'PATCH /admin/v1/keys/{id}': {
    operationId: 'changeKey',
    tag: 'Keys',
    summary: 'Change a key',
    description: 'Only the name of a revoked key can be changed, to free it.',
    body: { name: 'KeyChange', schema: keyChangeSchema, example: { endpoints: 'all', expires_at: null } },
    status: 200,
    answer: 'Key',
    ...change,
  },
  'POST /admin/v1/keys/{id}/rotate': {
    operationId: 'rotateKey',
    tag: 'Keys',
    summary: 'Give a key a new secret',
    description:
      'The key keeps its id. Its older secrets end after grace_seconds (0 unless given: at once); none that ends ' +
      'earlier is prolonged. The answer holds the new secret; it is never shown again.',
    body: {
      name: 'Rotation',
      schema: rotationSchema,
      example: { grace_seconds: 3600 },
      optional: true,
    },
    status: 200,
    answer: 'IssuedKey',
    ...change,
  },
  'POST /admin/v1/keys/{id}/revoke': {
    operationId: 'revokeKey',
    tag: 'Keys',
    summary: 'End a key with all its secrets for good',
    description: 'Within a second on every replica. Again and again with the same answer.',
    body: { name: 'Revocation', schema: revocationSchema, example: {}, optional: true },
    status: 200,
    answer: 'Key',
    ...change,
  },
  'GET /admin/v1/providers': {
    operationId: 'listProviders',
    tag: 'Providers',
    summary: 'All providers, never their secrets',
    status: 200,
    answer: 'ProviderPage',
  },
  'POST /admin/v1/providers': {
    operationId: 'createProvider',
    tag: 'Providers',
    summary: 'Add a provider',
    body: {
      name: 'NewProvider',
      schema: newProviderSchema,
      example: { name: 'openai', url: 'https://api.openai.com', secret: '<its API key>', default: true },
    },
    status: 201,
    answer: 'Provider',
    tagged: true,
    faults: [409],
  },
  'GET /admin/v1/providers/{name}': {
    operationId: 'getProvider',
    tag: 'Providers',
    summary: 'One provider',
    status: 200,
    answer: 'Provider',
    tagged: true,
    faults: [404],
  },
  'PATCH /admin/v1/providers/{name}': {
    operationId: 'changeProvider',
    tag: 'Providers',
    summary: 'Change a provider',
    description:
      'A url on another host needs the secret again, so that the stored one is never sent elsewhere.',
    body: { name: 'ProviderChange', schema: providerChangeSchema, example: { enabled: false } },
    status: 200,
    answer: 'Provider',
    ...change,
  },
  'DELETE /admin/v1/providers/{name}': {
    operationId: 'removeProvider',
    tag: 'Providers',
    summary: 'Remove a provider and its secret',
    status: 204,
    answer: null,
    conditional: true,
    faults: [404, 409],
  },
  'POST /admin/v1/providers/{name}/test': {
    operationId: 'testProvider',
    tag: 'Providers',
    summary: 'Ask a provider for its models and say what is wrong',
    description: '200 whatever came of it: the result is the answer.',
    body: { name: 'Nothing', schema: nothingSchema, example: {}, optional: true },
    status: 200,
    answer: 'Probe',
    faults: [404, 409],
  },
  'GET /admin/v1/requests': {
    operationId: 'listRequests',
    tag: 'Requests',
    summary: 'Forwarded calls, newest first',
    query: requestFilterSchema,
    status: 200,
    answer: 'RequestPage',
    faults: [404],
  },
  'GET /admin/v1/requests/export': {
    operationId: 'exportRequests',
    tag: 'Requests',
    summary: 'Every row as one stream of any length',
    description:
      'One object a line (ndjson, each a Request) or a table (csv). For incremental export give x-recorded-until of the ' +
      'answer as recorded_after of the next one; keep rows by their id, the last one counts. An answer that breaks off ' +
      'is no export.',
    query: exportSchema,
    status: 200,
    answer: null,
    types: ['application/x-ndjson', 'text/csv'],
    faults: [404],
  },
  'GET /admin/v1/requests/{id}': {
    operationId: 'getRequest',
    tag: 'Requests',
    summary: 'One forwarded call',
    status: 200,
    answer: 'Request',
    faults: [404],
  },
  'GET /admin/v1/usage': {
    operationId: 'getUsage',
    tag: 'Usage',
    summary: 'Calls, errors, tokens and bytes by the groups asked for, newest day or hour first',
    query: usageSchema,
    status: 200,
    answer: 'UsagePage',
    faults: [404],
  },
  'GET /admin/v1/audit': {
    operationId: 'listAudit',
    tag: 'Audit',
    summary: 'Who changed what, newest first',
    query: auditFilterSchema,
    status: 200,
    answer: 'AuditPage',
  },
};

/** What is to be said of a parameter, wherever it is; the schema knows its form. */
export const PARAMETERS: Record<string, { description: string; schema?: object }> = {
  id: { description: 'Its id.', schema: { type: 'string', format: 'uuid' } },
  name: { description: 'Its name.' },
  team: { description: 'Only those of this team, by name or id.' },
  key: { description: 'Only those of this key, by its id or its first 12 characters; never a whole key.' },
  prefix: { description: 'Only those with a secret that begins like this, 12 characters at most.' },
  provider: { description: 'Only those to this provider.' },
  model: { description: 'Only those for this model.' },
  status: { description: 'Only those with this status; of calls such as 429, or 5xx for all of them.' },
  outcome: { description: 'Only those that ended so.' },
  from: { description: 'At this time or later.' },
  to: { description: 'Before this time.' },
  recorded_after: { description: 'In the database after this time; for incremental export.' },
  actor: { description: 'Only by this actor.' },
  action: { description: 'Only changes of this kind.' },
  subject_type: { description: 'Only of such subjects.' },
  subject_id: { description: 'Only of this team, key or provider.' },
  subject_name: { description: 'Only of what was called so then.' },
  format: { description: 'One JSON object a line, or a table.' },
  group_by: {
    description: 'Separated by commas: team, key, provider, model, and one of day and hour.',
    schema: { type: 'string', default: 'team,day', example: 'model,day' },
  },
  limit: { description: 'How many rows.', schema: { type: 'integer', minimum: 1 } },
  cursor: { description: 'next_cursor of the page before.' },
};
