import { GatewayError } from '../errors/gateway-error.js';
import { usdOf } from '../limit-rules/usd.js';
import { type LimitState, LimitExceededError, LimitsUnavailableError } from './ledger/limit-errors.js';
import { isBudget, type LimitRule } from './ledger/rule-set.js';

const WINDOW_S = 60;
/**
 * A little less than a minute: many versions of the SDKs ignore longer times, and come back after a second, and once more.
 * They read `retry-after-ms` first. What they were told to wait too little, they wait at the next 429.
 */
const MAX_RETRY_MS = 59_999;

const PERIODS = {
  day: 'daily ',
  week: 'weekly ',
  month: 'monthly ',
  total: 'total ',
  session: '',
  minute: '',
  at_once: '',
};

/**
 * The response for a call that a limit does not admit.
 *
 * @param error of the ledger; any other is returned as it is
 * @param isAnthropic whether the caller reads the headers of Anthropic's API
 * @param help whom to ask for a larger budget: BUDGET_HELP
 */
export function limitRejection(error: unknown, isAnthropic: boolean, help: string | undefined): unknown {
  if (error instanceof LimitsUnavailableError)
    return new GatewayError('limits_unavailable', { cause: error.cause, message: error.reason });
  if (!(error instanceof LimitExceededError)) return error;
  const { state } = error;
  return isBudget(state.rule) ? spent(state, help) : tooMany(state, isAnthropic);
}

/** Whose limit it is, and of which calls. */
function ownerOf({ owner, ownerName, each, providers, models }: LimitRule): string {
  const owners = {
    installation: 'this gateway',
    group: `the group ${ownerName}`,
    team: each === 'end_user' ? 'the team' : 'the team of this gateway key',
    key: each === 'end_user' ? 'the gateway key' : 'this gateway key',
  };
  const whose = each === '' ? owners[owner] : `this ${each.replace('_', ' ')} of ${owners[owner]}`;
  const calls = [...(providers ?? []), ...(models ?? [])].join(', ');
  return calls === '' ? whose : `${whose} for ${calls}`;
}

/** What others have spent, and how much they may, is not for every holder of a key. */
function isShown({ owner }: LimitRule): boolean {
  return owner === 'team' || owner === 'key';
}

/** Names the limit, for programs and for administrators. The name of a group may have characters that a header may not. */
function nameHeader({ scope, ownerName, resource, period, filter }: LimitRule): string[] {
  const owner = ownerName === null ? scope : `${scope}/${encodeURIComponent(ownerName)}`;
  return ['x-gateway-limit', [owner, resource, period, ...(filter === '' ? [] : [filter])].join(' ')];
}

function spent({ rule, used, needed, amount, resetsAt }: LimitState, help: string | undefined): GatewayError {
  const shown = (value: bigint) => (rule.resource === 'usd' ? `$${usdOf(value)}` : `${value} tokens`);
  const isSpent = used >= amount;
  const amounts = isSpent
    ? `: ${shown(used)} of ${shown(amount)}`
    : `: ${shown(used)} of ${shown(amount)} was spent, and the request may use ${shown(needed)}`;
  const what = `${isSpent ? 'is spent' : 'does not cover this request'}${isShown(rule) ? amounts : ''}.`;
  const until =
    resetsAt === null ? 'It does not reset by itself.' : `It resets at ${resetsAt.toISOString()}.`;
  return new GatewayError('insufficient_quota', {
    message: [`The ${PERIODS[rule.period]}budget of ${ownerOf(rule)} ${what} ${until}`, help ?? []]
      .flat()
      .join(' '),
    limit: rule,
    headers: nameHeader(rule),
  });
}

function tooMany(state: LimitState, isAnthropic: boolean): GatewayError {
  const { rule, amount } = state;
  const retryMs = Math.max(Math.ceil(state.retryAfterMs ?? 0), 1);
  const retryS = Math.ceil(retryMs / 1_000);
  const remaining = amount > state.used ? amount - state.used : 0n;
  const what =
    rule.resource === 'concurrent_requests' ? 'concurrent requests' : `${rule.resource} per minute`;
  const limit = isShown(rule) ? `${amount} ${what}` : what;
  const amounts = [
    ...providerHeaders(rule, amount, remaining, retryMs, isAnthropic),
    ...standardHeaders(rule, amount, remaining, retryS),
  ];
  return new GatewayError('rate_limit_exceeded', {
    message: `The limit of ${limit} of ${ownerOf(rule)} is reached. Try again in ${retryS} s.`,
    type: { openai: rule.resource },
    limit: rule,
    headers: [
      ...nameHeader(rule),
      'retry-after',
      String(retryS),
      'retry-after-ms',
      String(Math.min(retryMs, MAX_RETRY_MS)),
      ...(isShown(rule) ? amounts : []),
    ],
  });
}

/** As the provider's own API has them, for the programs that read those. */
function providerHeaders(
  { resource }: LimitRule,
  amount: bigint,
  remaining: bigint,
  retryMs: number,
  isAnthropic: boolean,
): string[] {
  if (resource === 'concurrent_requests') return [];
  const values = {
    limit: String(amount),
    remaining: String(remaining),
    reset: isAnthropic
      ? new Date(Date.now() + retryMs).toISOString()
      : retryMs < 1_000
        ? `${retryMs}ms`
        : `${retryMs / 1_000}s`,
  };
  return Object.entries(values).flatMap(([name, value]) => [
    isAnthropic ? `anthropic-ratelimit-${resource}-${name}` : `x-ratelimit-${name}-${resource}`,
    value,
  ]);
}

/** RateLimit header fields for HTTP (draft-ietf-httpapi-ratelimit-headers-10). */
function standardHeaders(
  { resource }: LimitRule,
  amount: bigint,
  remaining: bigint,
  retryS: number,
): string[] {
  const policy =
    resource === 'concurrent_requests'
      ? `"concurrent_requests";q=${amount};qu="concurrent-requests"`
      : `"${resource}";q=${amount};w=${WINDOW_S}`;
  return ['RateLimit-Policy', policy, 'RateLimit', `"${resource}";r=${remaining};t=${retryS}`];
}
