import type { ClaimConditions, TrustPreset } from './trust.entity.js';

/** What a trust with a preset has if it does not say otherwise, and what its conditions must name. */
export interface Preset {
  /** null: the trust names its issuer. */
  readonly issuer: string | null;
  /** Claims of which the conditions name at least one: who the caller is, by something that nobody else can get. */
  readonly identity: readonly string[];
  /** Claims of which the conditions name at least one, unless `any_ref` is set. */
  readonly refs: readonly string[];
  readonly longestJwtMinutes: number;
}

const LONGEST_JWT_MINUTES = 120;
/** GitLab's tokens live as long as the job may run, and Azure's up to a day. */
const LONGEST_JWT_MINUTES_OF_A_DAY = 1_440;

const GITHUB_REFS = ['ref', 'environment', 'workflow_ref', 'job_workflow_ref'];
const GITLAB_REFS = ['ref', 'ref_protected', 'environment', 'ci_config_ref_uri'];

export const PRESETS: Readonly<Record<TrustPreset, Preset>> = {
  github: {
    issuer: 'https://token.actions.githubusercontent.com',
    identity: ['repository_id', 'repository_owner_id'],
    refs: GITHUB_REFS,
    longestJwtMinutes: LONGEST_JWT_MINUTES,
  },
  gitlab: {
    issuer: 'https://gitlab.com',
    identity: ['project_id', 'namespace_id'],
    refs: GITLAB_REFS,
    longestJwtMinutes: LONGEST_JWT_MINUTES_OF_A_DAY,
  },
  kubernetes: { issuer: null, identity: ['sub'], refs: [], longestJwtMinutes: LONGEST_JWT_MINUTES_OF_A_DAY },
  aws: { issuer: null, identity: ['sub'], refs: [], longestJwtMinutes: LONGEST_JWT_MINUTES },
  google: {
    issuer: 'https://accounts.google.com',
    identity: ['sub', 'email'],
    refs: [],
    longestJwtMinutes: LONGEST_JWT_MINUTES,
  },
  azure: {
    issuer: null,
    identity: ['sub', 'oid'],
    refs: [],
    longestJwtMinutes: LONGEST_JWT_MINUTES_OF_A_DAY,
  },
  oidc: { issuer: null, identity: ['sub'], refs: [], longestJwtMinutes: LONGEST_JWT_MINUTES },
};

const GITHUB = /^https:\/\/token\.actions\.githubusercontent\.com(?:\/|$)/;
const GITLAB = /^https:\/\/gitlab\.com(?:\/|$)/;

/** Issuers that serve everybody: `aud` and a name alone would let anybody in who may choose a name there. */
const SHARED: readonly { issuer: RegExp; identity: readonly string[]; refs: readonly string[] }[] = [
  { ...PRESETS.github, issuer: GITHUB },
  { ...PRESETS.gitlab, issuer: GITLAB },
  { ...PRESETS.google, issuer: /^https:\/\/accounts\.google\.com(?:\/|$)/ },
  {
    issuer: /^https:\/\/agent\.buildkite\.com(?:\/|$)/,
    identity: ['organization_id', 'pipeline_id'],
    refs: [],
  },
  {
    issuer: /^https:\/\/oidc\.circleci\.com(?:\/|$)/,
    identity: ['oidc.circleci.com/project-id'],
    refs: [],
  },
  {
    issuer: /^https:\/\/app\.terraform\.io(?:\/|$)/,
    identity: ['terraform_organization_id', 'terraform_project_id', 'terraform_workspace_id'],
    refs: [],
  },
];

/** The events of GitHub that run what has been merged, or what somebody with write access starts. */
const GITHUB_EVENTS = [
  'push',
  'workflow_dispatch',
  'schedule',
  'release',
  'merge_group',
  'deployment',
] as const;

/** What the conditions of a trust must name: that of its preset, and of its issuer if that is a shared one. */
export function demandsOf(preset: TrustPreset, issuer: string): Pick<Preset, 'identity' | 'refs'>[] {
  return [PRESETS[preset], ...SHARED.filter((shared) => shared.issuer.test(issuer))];
}

/**
 * The conditions that a token is held against: those of the trust, and what its issuer makes necessary. Workflows for pull
 * requests and comments of strangers run with the ref of the base branch, so they must be named. So must tags of GitLab: one
 * may have the name of a branch.
 */
export function effectiveConditions(
  preset: TrustPreset,
  issuer: string,
  claims: ClaimConditions,
): ClaimConditions {
  const isGithub = preset === 'github' || GITHUB.test(issuer);
  const isGitlab = preset === 'gitlab' || GITLAB.test(issuer);
  return {
    ...(isGithub && { event_name: GITHUB_EVENTS }),
    ...(isGitlab && 'ref' in claims && { ref_type: ['branch'] }),
    ...('email' in claims && { email_verified: [true] }),
    ...claims,
  };
}
