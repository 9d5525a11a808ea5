import type { ResponseOf } from '../../api/client';
import type { Tone } from '../../display/status-badge';

export type Trust = ResponseOf<'/admin/v1/trusts/{id}', 'get'>;
export type Preset = Trust['preset'];
type Value = Trust['claims'][string][number];

interface PresetInfo {
  label: string;
  /** That of its tokens, unless another one is given. */
  issuer?: string;
  /** What its issuer looks like, where each has another. */
  example?: string;
  /** The conditions that a new trust begins with. */
  claims: readonly string[];
  /** Whether tokens name a branch, tag or environment. */
  hasRefs?: true;
}

export const PRESETS: Record<Preset, PresetInfo> = {
  github: {
    label: 'GitHub Actions',
    issuer: 'https://token.actions.githubusercontent.com',
    claims: ['repository_id', 'ref'],
    hasRefs: true,
  },
  gitlab: {
    label: 'GitLab CI',
    issuer: 'https://gitlab.com',
    claims: ['project_id', 'ref'],
    hasRefs: true,
  },
  kubernetes: {
    label: 'Kubernetes',
    example: 'https://kubernetes.default.svc.cluster.local',
    claims: ['sub'],
  },
  aws: { label: 'AWS', example: 'https://<ID>.tokens.sts.global.api.aws', claims: ['sub'] },
  google: { label: 'Google Cloud', issuer: 'https://accounts.google.com', claims: ['sub'] },
  azure: { label: 'Azure', example: 'https://login.microsoftonline.com/<tenant>/v2.0', claims: ['sub'] },
  oidc: { label: 'Another OpenID Connect issuer', example: 'https://issuer.example.com', claims: ['sub'] },
};

/** What an accepted value of a claim may look like. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  repository_id: '821093847',
  project_id: '4711',
  ref: 'refs/heads/main',
  sub: 'system:serviceaccount:prod:worker',
};

/** The queries that show trusts. */
export const TRUST_LISTS = ['trusts', 'trust-failures', 'key-tokens'];

export function stateOf({ enabled }: Pick<Trust, 'enabled'>): { tone: Tone; label: string } {
  return enabled ? { tone: 'good', label: 'enabled' } : { tone: 'warning', label: 'disabled' };
}

/** A claim and the values that are accepted of it, as they are typed. */
export interface Condition {
  name: string;
  values: string[];
}

export function conditionsOf(claims: Trust['claims']): Condition[] {
  return Object.entries(claims).map(([name, values]) => ({ name, values: values.map(String) }));
}

/** @param stored as the trust has them: a number that was not changed stays one */
export function claimsOf(conditions: readonly Condition[], stored: Trust['claims']): Trust['claims'] {
  // Without prototypes: every name is that of a claim, also "constructor".
  const claims = Object.create(null) as Record<string, Value[]>;
  const before = new Map(Object.entries(stored));
  for (const { name, values } of conditions)
    if (name !== '')
      (claims[name] ??= []).push(...values.map((text) => valueOf(text, before.get(name) ?? [])));
  return claims;
}

function valueOf(text: string, stored: readonly Value[]): Value {
  const same = stored.find((value) => String(value) === text);
  if (same !== undefined) return same;
  return text === 'true' || text === 'false' ? text === 'true' : text;
}
