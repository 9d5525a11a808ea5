/** A fault of the database that no waiting mends: the process says so in one line and exits. */
export class DatabaseFault extends Error {
  override readonly name = 'DatabaseFault';
}

/** SQLSTATEs that only a person can mend, with the remedy (PostgreSQL documentation, appendix A). */
const REMEDIES: Record<string, string> = {
  '28P01': 'Postgres refused the user or password of DATABASE_URL. Correct them and start again.',
  '28000':
    'Postgres refused this user or host (pg_hba.conf). Correct DATABASE_URL or the server, and start again.',
  '3D000': 'The database named by DATABASE_URL does not exist. Create it (createdb) and start again.',
  '42501': 'The user of DATABASE_URL may not create tables. Grant CREATE on its schema, or use its owner.',
};

/**
 * Tells faults that heal (server away, starting, out of connections) from those that do not.
 *
 * @returns the fault to give up with, or null to try again
 */
export function unhealable(error: unknown): DatabaseFault | null {
  if (error instanceof DatabaseFault) return error;
  const { code, message } = error as { code?: string; message?: string };
  if (code !== undefined && REMEDIES[code] !== undefined)
    return new DatabaseFault(REMEDIES[code], { cause: error });
  // pg's own words when the server asks for a password and the URL has none.
  if (message?.includes('client password must be'))
    return new DatabaseFault(REMEDIES['28P01'], { cause: error });
  return null;
}
