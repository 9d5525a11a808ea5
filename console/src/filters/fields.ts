import type { operations } from '../api/client';

type CallQuery = NonNullable<operations['listRequests']['parameters']['query']>;

/** What calls can be filtered by. The names are those of the API and of the URL. */
export const FIELDS = {
  group: { label: 'Group', input: 'suggest', hint: 'Of teams' },
  team: { label: 'Team', input: 'choice' },
  key: { label: 'Key', input: 'choice' },
  owner: { label: 'Owner', input: 'text', hint: 'Of the key or its team, whole' },
  cost_center: { label: 'Cost center', input: 'text', hint: 'Of the key or its team, whole' },
  provider: { label: 'Provider', input: 'choice' },
  model: { label: 'Model', input: 'suggest' },
  failed: { label: 'Result', input: 'choice' },
  status: { label: 'Status', input: 'list', hint: 'Statuses such as 429, or classes such as 5xx' },
  outcome: { label: 'Outcome', input: 'choice' },
  usage_final: { label: 'Usage', input: 'choice' },
  provider_error: {
    label: 'Error of the provider',
    input: 'text',
    hint: 'Its type or code, such as insufficient_quota',
  },
  end_user: { label: 'End user', input: 'text', hint: 'As the client named it' },
  session: { label: 'Session', input: 'text', hint: 'As the client named it' },
  subject: { label: 'Subject', input: 'text', hint: 'Whom the token was issued to' },
  tag: { label: 'Tag', input: 'text', hint: 'As in x-gateway-tags: env=prod; several with commas' },
  min_duration_ms: { label: 'Duration from', input: 'number', hint: 'In milliseconds', unit: 'ms' },
} as const satisfies Partial<Record<keyof CallQuery, Field>>;
export type FieldName = keyof typeof FIELDS;

export interface Field {
  label: string;
  /** `choice`: one of a list; `list`: several, or others; `suggest`: any text, with suggestions. */
  input: 'choice' | 'list' | 'suggest' | 'text' | 'number';
  hint?: string;
  unit?: string;
}

export const OUTCOMES = {
  completed: 'Completed',
  client_aborted: 'Client disconnected',
  client_error: 'Client error',
  upstream_error: 'Provider error',
  upstream_timeout: 'Provider timed out',
  truncated: 'Truncated',
  interrupted: 'Interrupted',
  replayed: 'Replayed',
  cached: 'From the cache',
  retried: 'Retried',
} as const satisfies Record<NonNullable<CallQuery['outcome']>, string>;

export const RESULTS = { true: 'Failed', false: 'Not failed' } as const satisfies Record<
  NonNullable<CallQuery['failed']>,
  string
>;

export const USAGES = { true: 'Read to the end', false: 'Not read to the end' } as const satisfies Record<
  NonNullable<CallQuery['usage_final']>,
  string
>;

export const STATUSES = [
  '2xx',
  '4xx',
  '5xx',
  '200',
  '400',
  '401',
  '403',
  '404',
  '408',
  '429',
  '500',
  '502',
  '503',
  '504',
];

export type CallFilter = Pick<CallQuery, FieldName>;
