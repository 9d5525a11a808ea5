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

/**
 * Is this the error of a statement because Postgres does not know a time zone? Node has names that Postgres does not have,
 * such as US/Pacific-New, and may have newer ones. Only for statements of which nothing else can be an invalid parameter.
 */
export function isUnknownTimeZone(error: unknown): boolean {
  return (error as { code?: string }).code === '22023';
}
