/** When the sign-in `si` of the team `t` is over, however often it is renewed. */
export const ENDS_AT = `LEAST(si.expires_at, si.created_at + make_interval(days => (t.sign_in->>'days')::int))`;

/** When it is over unless it is renewed before. */
export const IS_OVER_AT = `LEAST(${ENDS_AT}, si.last_renewed_at + interval '14 days')`;

/** The parents of a token: the person `p`, the key `k` and its team `t`, in which people may sign in. */
export const IN_FORCE = `
  p.ended_at IS NULL AND k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled
  AND COALESCE(k.expires_at > now(), true) AND t.sign_in IS NOT NULL`;

/** A sign-in `si` that goes on, with its parents. */
export const GOES_ON = `si.ended_at IS NULL AND ${IS_OVER_AT} > now() AND ${IN_FORCE}`;
