import type { ResponseOf } from '../../api/client';
import type { Tone } from '../../display/status-badge';

export type Policy = ResponseOf<'/admin/v1/policies/{id}', 'get'>;

/** The queries that show policies. */
export const POLICY_LISTS = ['policies'];

export const SENT: Record<Policy['send'], string> = {
  head: 'Facts of the call: who, model, endpoint, tags',
  body: 'The request body as well; WebSockets are rejected',
};

export const ON_FAILURE: Record<Policy['on_failure'], string> = {
  reject: 'Reject the call, with 503',
  allow: 'Forward the call unchecked',
};

export function stateOf({ enabled, secret_state }: Policy): { tone: Tone; label: string } {
  if (!enabled) return { tone: 'warning', label: 'disabled' };
  return secret_state === 'unreadable'
    ? { tone: 'bad', label: 'unreadable' }
    : { tone: 'good', label: 'enabled' };
}

/** About whose calls it is asked. */
export function callersOf({ applies_to: { teams, keys } }: Policy): string {
  const names = [...(teams ?? []).map((team) => `team ${team}`), ...(keys ?? []).map((key) => `key ${key}`)];
  return names.length === 0 ? 'all' : names.join(', ');
}
