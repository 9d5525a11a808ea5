import type { ResponseOf } from '../../api/client';
import type { Tone } from '../../display/status-badge';

export type Provider = ResponseOf<'/admin/v1/providers/{name}', 'get'>;
export type Probe = ResponseOf<'/admin/v1/providers/{name}/test', 'post'>;
export type AuditEntry = ResponseOf<'/admin/v1/audit', 'get'>['data'][number];

export const SECRET_STATES: Record<Provider['secret_state'], { label: string; tone: Tone }> = {
  sealed: { label: 'stored', tone: 'good' },
  none: { label: 'none', tone: 'neutral' },
  unreadable: { label: 'unreadable', tone: 'bad' },
  environment: { label: 'from PROVIDER_KEY', tone: 'neutral' },
};

/**
 * When the secret of a provider was last set, from the audit log's entries of providers, newest first. Undefined if they
 * do not tell.
 */
export function secretSetAt(
  { id, secret_state }: Provider,
  audit: readonly AuditEntry[],
): string | undefined {
  if (id === null || secret_state === 'none') return undefined;
  return audit.find(
    ({ subject_id, action, after }) =>
      subject_id === id && (action === 'created' || (after !== null && 'secret' in after)),
  )?.at;
}

/** Since when calls to a provider fail, and how many do; undefined unless they fail now. It has no calls while it is disabled. */
export function failingOf(
  attention: ResponseOf<'/admin/v1/attention', 'get'> | undefined,
  { name, enabled }: Pick<Provider, 'name' | 'enabled'>,
) {
  if (!enabled) return undefined;
  const failing = attention?.data.find(({ kind }) => kind === 'provider_failing')?.names;
  return failing?.find((one) => one.name === name);
}
