/** Whether the secret `s` of the key `k` has not ended with what it was issued by. A static secret ends with its key alone. */
const PARENTS_ARE_ENABLED = `(s.kind = 'key' OR (
           COALESCE(s.created_at > k.tokens_valid_from, true)
           AND CASE s.kind WHEN 'exchange' THEN tr.enabled ELSE si.ended_at IS NULL AND p.ended_at IS NULL END))`;

/** Secrets with what they end with. */
export const SECRETS = `gateway_key_secret s
  JOIN gateway_key k ON k.id = s.key_id
  JOIN team t ON t.id = k.team_id
  LEFT JOIN trust tr ON tr.id = s.trust_id
  LEFT JOIN sign_in si ON si.id = s.sign_in_id
  LEFT JOIN person p ON p.id = si.person_id`;

/** Whether one of SECRETS works now, if its key does. */
export const HAS_NOT_ENDED = `COALESCE(s.expires_at > now(), true)
           AND ${PARENTS_ARE_ENABLED}`;

/** Whether one of SECRETS works now. */
export const IS_ENABLED = `k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled
           AND COALESCE(k.expires_at > now(), true)
           AND ${HAS_NOT_ENDED}`;
