/** A sign-in ends when nobody has renewed it for so long. */
const IDLE = `interval '14 days'`;

/** The parents of a token: the person `p`, the key `k` and its team `t`, in which people may sign in. */
export const IN_FORCE = `
  p.ended_at IS NULL AND k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled
  AND COALESCE(k.expires_at > now(), true) AND t.sign_in IS NOT NULL`;

/** A sign-in `si` that goes on, with its parents. */
export const GOES_ON = `
  si.ended_at IS NULL AND si.expires_at > now() AND si.last_renewed_at > now() - ${IDLE}
  AND si.created_at + make_interval(days => (t.sign_in->>'days')::int) > now() AND ${IN_FORCE}`;
