import { isDeepStrictEqual } from 'node:util';
import type { GroupView } from '../../../groups/groups.schema.js';
import type { TrustView } from '../../../identity/trusts/trusts.schema.js';
import type { KeyView } from '../../../keys/keys.schema.js';
import type { Budget, ShownLimits } from '../../../limit-rules/limit-rules.schema.js';
import type { PolicyView } from '../../../policies-by-url/policies.schema.js';
import type { PriceView } from '../../../pricing/prices.schema.js';
import { settingNames } from '../../../providers/credentials/auth-settings.js';
import { catalogOf } from '../../../providers/provider-catalog.js';
import type { ProviderView } from '../../../providers/providers.schema.js';
import type { RouteView } from '../../../routes/routes.schema.js';
import type { SinkView } from '../../../sinks/sinks.schema.js';
import type { TeamView } from '../../../teams/teams.schema.js';
import type { WebhookView } from '../../../webhooks/webhooks.schema.js';

/** An object of the file, with the members in the order in which they are written. */
export type Item = Record<string, unknown>;

/** Of a file for `postern apply`: its lists, and what stands alone, in the order in which they are written. */
export type ExportDocument = Record<string, Item[] | Item>;

/** In place of what is secret. */
const AS_STORED = { stored: true };
const SINCE_EVER = new Date(0).toISOString();

// What an absent member means to `postern apply`, if it is not null.
const OF_BUDGET = { mode: 'block', alert_at: [], reservation: 'typical' };
const OF_LIMITS = { budgets: [], filtered_limits: [] };
const OF_TEAM = { ...OF_LIMITS, stream_usage: 'as_sent' };
const OF_SIGN_IN = { endpoints: 'inference', token_minutes: 60, days: 30 };
const OF_KEY = {
  ...OF_TEAM,
  endpoints: 'inference',
  idempotency: 'forward',
  websockets: false,
  secret: true,
};
const OF_TRUST = { preset: 'oidc', any_ref: false, token_minutes: 60, max_live: 1000 };
const OF_POLICY = {
  applies_to: {},
  send: 'head',
  timeout_ms: 300,
  on_failure: 'reject',
  cache_seconds: 0,
  order: 0,
};
const OF_ROUTE = {
  strategy: 'order',
  retry_on: ['connect', 'refused'],
  max_attempts: 2,
  dialect: 'any',
  default: false,
};

/** Of all calls. */
export function installationItem(limits: ShownLimits): Item {
  return item(limitsOf(limits, 'allow'), OF_LIMITS);
}

export function groupItem({ name, note, ...limits }: GroupView): Item {
  return item({ name, note, ...limitsOf(limits, 'allow') }, OF_LIMITS);
}

export function teamItem(team: TeamView): Item {
  const { name, disabled, group, models, stream_usage, owner, contact, cost_center, note } = team;
  const { providers, default_provider, self_service } = team;
  const { sign_in, claude_code } = team;
  return item(
    {
      ...{ name, disabled: disabled || null, group, owner, contact, cost_center, note, models, stream_usage },
      ...{ providers, default_provider },
      ...limitsOf(team),
      self_service: self_service && item({ ...self_service }),
      sign_in: sign_in && item({ ...sign_in }, OF_SIGN_IN),
      claude_code: claude_code && item({ ...claude_code }),
    },
    OF_TEAM,
  );
}

export function keyItem(key: KeyView): Item {
  const { team, name, disabled, expires_at, providers, endpoints, idempotency, websockets, cache } = key;
  const { owner, contact, cost_center, note, models, stream_usage, on_disconnect } = key;
  return item(
    {
      ...{ team, name, disabled: disabled || null, owner, contact, cost_center, note, expires_at },
      secret: key.prefix !== null,
      ...{ providers, models, endpoints, idempotency, websockets, stream_usage, on_disconnect },
      cache: cache && item({ ...cache }, { shared: 'key' }),
      ...limitsOf(key),
    },
    OF_KEY,
  );
}

export function trustItem(trust: TrustView): Item {
  const { name, key, preset, issuer, audience, jwks, claims, any_ref, cidrs, enabled } = trust;
  const { token_minutes, longest_jwt_minutes, max_live } = trust;
  return item(
    {
      ...{ name, key, preset, issuer, audience, jwks, claims, any_ref, cidrs },
      ...{ token_minutes, longest_jwt_minutes, max_live, enabled: enabled ? null : false },
    },
    OF_TRUST,
  );
}

export function providerItem(provider: ProviderView): Item {
  const { name, url, auth, auth_settings, secret_state, shadowed_by, enabled, catalog } = provider;
  const { on_disconnect, team } = provider;
  // Some belong to the secret.
  const settings = Object.entries(auth_settings ?? {}).filter(([name]) => settingNames(auth).includes(name));
  return {
    ...item(
      {
        ...{ name, url, auth, auth_settings: settings.length > 0 ? Object.fromEntries(settings) : null },
        // PROVIDER_URL only takes its place.
        default: provider.default || shadowed_by !== null,
        enabled: enabled ? null : false,
        // Absent, it stays as it is.
        on_disconnect,
        team,
      },
      { auth: 'bearer', default: false },
    ),
    ...(catalog !== catalogOf(url) && { catalog }),
    secret: secret_state === 'none' ? null : AS_STORED,
  };
}

export function routeItem(route: RouteView): Item {
  const { name, targets, strategy, retry_on, max_attempts, dialect } = route;
  const sent = targets.map(({ provider, models }) => item({ provider, models }));
  return item(
    { name, targets: sent, strategy, retry_on, max_attempts, dialect, default: route.default },
    OF_ROUTE,
  );
}

export function priceItem(price: PriceView): Item {
  const { id: _, source: __, version: ___, created_at: ____, ...settings } = price;
  return item({ ...settings }, { effective_from: SINCE_EVER });
}

export function webhookItem({ id, format, events }: WebhookView): Item {
  return item({ url: { stored: id }, format, events }, { format: 'standard' });
}

export function policyItem(policy: PolicyView): Item {
  const { name, url, applies_to, send, timeout_ms, on_failure, cache_seconds, order, enabled } = policy;
  const settings = item(
    {
      ...{ name, url: url.endsWith('…') ? AS_STORED : url, applies_to: item({ ...applies_to }) },
      ...{ send, timeout_ms, on_failure, cache_seconds, order, enabled: enabled ? null : false },
    },
    OF_POLICY,
  );
  return { ...settings, secret: AS_STORED };
}

export function sinkItem({ name, kind, url, target, enabled }: SinkView): Item {
  return {
    ...item({
      name,
      kind,
      url: url.endsWith('…') ? AS_STORED : url,
      target,
      enabled: enabled ? null : false,
    }),
    // Whether there is one is not shown either.
    secret: AS_STORED,
  };
}

/** @param unpriced what a budget does with calls without a price, if it does not say */
function limitsOf(shown: ShownLimits, unpriced = 'reject'): Item {
  const budgetItem = (budget: Budget) => item({ ...budget }, { ...OF_BUDGET, unpriced });
  const eachOf = (each: ShownLimits['each_session']) =>
    each && item({ ...each, budgets: each.budgets.map(budgetItem) }, OF_LIMITS);
  return {
    limits: shown.limits && item({ ...shown.limits }),
    filtered_limits: shown.filtered_limits.map((one) => item({ ...one })),
    budgets: shown.budgets.map(budgetItem),
    each_end_user: eachOf(shown.each_end_user),
    each_session: eachOf(shown.each_session),
  };
}

/** The members that are neither null nor what an absent one means. */
function item(members: Item, absent: Item = {}): Item {
  return Object.fromEntries(
    Object.entries(members).filter(
      ([name, value]) => value !== null && value !== undefined && !isDeepStrictEqual(value, absent[name]),
    ),
  );
}
