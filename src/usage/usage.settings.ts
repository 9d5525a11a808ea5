import { z } from 'zod';

const ZONE = 'must be an IANA time zone such as Europe/Berlin';
const DAYS = 'must be an integer from 1 to 36500';

/** An IANA time zone. Offsets such as +05:30 mean the opposite to Postgres, which follows POSIX. */
export const timeZone = z.string(ZONE).refine((zone) => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return /^[A-Za-z]/.test(zone);
  } catch {
    return false;
  }
}, ZONE);

/** Settings of the usage module. */
export const usageSettings = z.object({
  REPORT_TIMEZONE: timeZone.default('UTC'),
  USAGE_RETENTION_DAYS: z
    .string()
    .regex(/^\d{1,5}$/, DAYS)
    .transform(Number)
    .refine((days) => days >= 1 && days <= 36_500, DAYS)
    .default(800),
});
