import type { ResponseOf } from '../../api/client';
import type { Tone } from '../../display/status-badge';

export type Key = ResponseOf<'/admin/v1/keys/{id}', 'get'>;
export type KeyStatus = ResponseOf<'/admin/v1/keys/find', 'post'>['status'];

export const STATUS_TONES: Record<KeyStatus, Tone> = {
  active: 'good',
  disabled: 'warning',
  expired: 'bad',
  revoked: 'neutral',
};

/** The most severe status first, as the gateway decides. A disabled team disables its keys. */
export function statusOf(
  key: Pick<Key, 'revoked_at' | 'expires_at' | 'disabled'>,
  isTeamDisabled: boolean,
  now: Date,
): KeyStatus {
  if (key.revoked_at !== null) return 'revoked';
  if (key.expires_at !== null && new Date(key.expires_at) <= now) return 'expired';
  return key.disabled || isTeamDisabled ? 'disabled' : 'active';
}
