export const TIME_ZONE_REMEDY = 'must be an IANA time zone such as Europe/Berlin';

/** Is this an IANA time zone? Offsets such as +05:30 are rejected: they mean the opposite to Postgres, which follows POSIX. */
export function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return /^[A-Za-z]/.test(zone);
  } catch {
    return false;
  }
}
