/** When the sign-in `si` of the team `t` is over, unless it is renewed before: 14 days after its last renewal at the latest. */
export const IS_OVER_AT = `LEAST(si.expires_at, si.last_renewed_at + interval '14 days',
    si.created_at + make_interval(days => (t.sign_in->>'days')::int))`;

/** The parents of a token: the person `p`, the key `k` and its team `t`, in which people may sign in. */
export const IN_FORCE = `
  p.ended_at IS NULL AND k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled
  AND COALESCE(k.expires_at > now(), true) AND t.sign_in IS NOT NULL`;

/** A sign-in `si` that goes on, with its parents. */
export const GOES_ON = `si.ended_at IS NULL AND ${IS_OVER_AT} > now() AND ${IN_FORCE}`;
