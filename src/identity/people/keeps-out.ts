/** Whether the key `k` keeps the person `p` out of its team: it was revoked, and they were not let in again. */
export const KEEPS_OUT = `
  k.person_id = p.id AND k.origin = 'sign_in' AND k.revoked_at > COALESCE(p.reopened_at, '-infinity')`;
