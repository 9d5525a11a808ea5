import { demandsOf } from './presets.js';
import type { ClaimConditions, TrustPreset } from './trust.entity.js';

/** A claim whose value is an ID: a part of it is the ID of somebody else. */
const ID_CLAIM = /(?:^|[_/-])(?:id|oid)$/i;

/** What is wrong with conditions: a message for each claim, `claims` for all of them together. */
export interface Problem {
  readonly field: string;
  readonly message: string;
}

/** What is wrong with the conditions of a new or changed trust. */
export function problemsOf(
  preset: TrustPreset,
  issuer: string,
  claims: ClaimConditions,
  anyRef: boolean,
): Problem[] {
  const problems: Problem[] = [];
  for (const [name, values] of Object.entries(claims))
    for (const value of values) {
      const message = wildcardProblem(name, value);
      if (message !== null) problems.push({ field: `claims.${name}`, message });
    }
  const names = Object.keys(claims);
  const isNamed = (all: readonly string[]) => all.some((name) => names.includes(name));
  for (const { identity, refs } of demandsOf(preset, issuer)) {
    if (!isNamed(identity)) {
      const message = `must name ${listOf(identity)}: otherwise others with a token of this issuer could use the trust`;
      problems.push({ field: 'claims', message });
    }
    if (refs.length > 0 && !anyRef && !isNamed(refs)) {
      const message = `must name ${listOf(refs)}; to accept every branch, tag and environment, set any_ref`;
      problems.push({ field: 'claims', message });
    }
  }
  if (preset === 'kubernetes' && (claims.sub ?? []).some((value) => String(value).includes('*')))
    problems.push({ field: 'claims.sub', message: 'must not contain *: name each service account' });
  return problems.filter(
    ({ field, message }, i) =>
      problems.findIndex((one) => one.field === field && one.message === message) === i,
  );
}

function listOf(names: readonly string[]): string {
  return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

function wildcardProblem(name: string, value: string | number | boolean): string | null {
  if (typeof value !== 'string' || !value.includes('*')) return null;
  if (ID_CLAIM.test(name)) return 'must not contain *, because a part of an ID is the ID of somebody else';
  return /^[^*]*[:/]\*$/.test(value)
    ? null
    : 'may contain * only at its end, after : or /; otherwise it would match longer names of others';
}

/** Whether the value of a claim is one of those that a condition accepts. */
export function isMet(accepted: ClaimConditions[string], value: unknown): boolean {
  return accepted.some((one) => matches(one, value));
}

/** Compared as JSON, never converted: a claim that is 1 or true is neither "1" nor "true", and a list is no value of its. */
function matches(accepted: string | number | boolean, value: unknown): boolean {
  if (typeof accepted === 'string' && accepted.endsWith('*') && typeof value === 'string') {
    const beginning = accepted.slice(0, -1);
    return value.length > beginning.length && value.startsWith(beginning);
  }
  return value === accepted;
}

/** A claim by its name, or by a JSON pointer if the name begins with `/` (RFC 6901). */
export function claimOf(claims: Record<string, unknown>, name: string): unknown {
  if (!name.startsWith('/')) return Object.hasOwn(claims, name) ? claims[name] : undefined;
  let value: unknown = claims;
  for (const part of name.slice(1).split('/')) {
    const member = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, member))
      return undefined;
    value = (value as Record<string, unknown>)[member];
  }
  return value;
}
