import type { EntityManager } from 'typeorm';
import { RECEIVER_MESSAGES } from '../webhooks/webhook-view.js';
import type { Decision } from './decision/decision.js';
import type { PolicyTestResult, PolicyView } from './policies.schema.js';
import type { StoredPolicy } from './policy.entity.js';

const TEAM_NAMES = 'SELECT id, name FROM team WHERE id = ANY ($1)';
const KEY_NAMES = `
  SELECT k.id, t.name || '/' || k.name AS name FROM gateway_key k JOIN team t ON t.id = k.team_id WHERE k.id = ANY ($1)`;

/** A policy with the names of what it applies to. */
export type NamedPolicy = StoredPolicy & { teams: string[] | null; keys: string[] | null };

/** Finds the names of the teams and keys that policies apply to. */
export async function named(
  manager: EntityManager,
  policies: readonly StoredPolicy[],
): Promise<NamedPolicy[]> {
  const teams = await namesOf(
    manager,
    TEAM_NAMES,
    policies.flatMap(({ teamIds }) => teamIds ?? []),
  );
  const keys = await namesOf(
    manager,
    KEY_NAMES,
    policies.flatMap(({ keyIds }) => keyIds ?? []),
  );
  const all = (ids: string[] | null, names: Map<string, string>) =>
    ids === null ? null : ids.map((id) => names.get(id) ?? id).sort();
  return policies.map((policy) => ({
    ...policy,
    teams: all(policy.teamIds, teams),
    keys: all(policy.keyIds, keys),
  }));
}

async function namesOf(
  manager: EntityManager,
  sql: string,
  ids: readonly string[],
): Promise<Map<string, string>> {
  const rows = ids.length === 0 ? [] : await manager.query<{ id: string; name: string }[]>(sql, [ids]);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** Lists each field, so that a new column is not shown by accident. */
export function policyView(policy: NamedPolicy, isReadable: boolean): PolicyView {
  const { version, createdAt, updatedAt } = policy;
  const { id, name, url, ...settings } = settingsOf(policy);
  return {
    ...{ id, name, url, secret_state: isReadable ? 'sealed' : 'unreadable', ...settings, version },
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
  };
}

/** What the audit log records of a policy. */
export function settingsOf(policy: NamedPolicy) {
  const { id, name, shownUrl, teams, keys, models, send, enabled } = policy;
  return {
    ...{ id, name, url: shownUrl, applies_to: { teams, keys, models }, send },
    timeout_ms: policy.timeoutMs,
    on_failure: policy.onFailure,
    cache_seconds: policy.cacheSeconds,
    order: policy.runOrder,
    enabled,
  };
}

const MESSAGES: Record<Exclude<PolicyTestResult['code'], 'ok'>, string> = {
  ...RECEIVER_MESSAGES,
  not_http:
    'The receiver closed the connection or does not respond with HTTP. Check the scheme and port of the URL.',
  timeout: 'The receiver did not respond within its timeout_ms. Make it faster, or raise timeout_ms.',
  unexpected_status: 'The receiver must respond with status 200, also to reject a call.',
  response_too_large: 'The response is larger than 64 KiB.',
  invalid_decision:
    'The response is no decision. Send {"allow": true} or {"allow": false, "code": "pii_found", "message": "…"} as JSON.',
};

export function testFailure(code: string, durationMs: number): PolicyTestResult {
  const known = code as keyof typeof MESSAGES;
  return {
    ok: false,
    code: known,
    message: MESSAGES[known],
    decision: null,
    duration_ms: rounded(durationMs),
  };
}

export function testResult(decision: Decision, durationMs: number): PolicyTestResult {
  const { allow } = decision;
  return {
    ok: true,
    code: 'ok',
    message: `OK: the call would be ${allow ? 'forwarded' : 'rejected'}.`,
    decision: {
      allow,
      code: decision.allow ? null : decision.code,
      message: decision.allow ? null : decision.message,
      tags: decision.allow ? (decision.tags ?? null) : null,
    },
    duration_ms: rounded(durationMs),
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
