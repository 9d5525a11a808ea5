/** A database error that a retry cannot fix: the process logs it in one line and exits. */
export class PermanentDatabaseError extends Error {
  override readonly name = 'PermanentDatabaseError';
}

/** SQLSTATEs that an operator must fix, with the remedy (PostgreSQL documentation, appendix A). */
const REMEDIES: Record<string, string> = {
  '28P01': 'Postgres rejected the user or password of DATABASE_URL. Correct them and start again.',
  '28000':
    'Postgres rejected this user or host (pg_hba.conf). Correct DATABASE_URL or the server, and start again.',
  '3D000': 'The database named by DATABASE_URL does not exist. Create it (createdb) and start again.',
  '42501':
    'The user of DATABASE_URL may not create tables. Set MIGRATE=off, and run postern migrate with the URL of their owner; or grant CREATE on the schema.',
};

/**
 * Distinguishes permanent errors from temporary ones (server unavailable, starting, out of connections).
 *
 * @returns the permanent error, or null if a retry may succeed
 */
export function permanentError(error: unknown): PermanentDatabaseError | null {
  if (error instanceof PermanentDatabaseError) return error;
  const { code, message } = error as { code?: string; message?: string };
  if (code !== undefined && REMEDIES[code] !== undefined)
    return new PermanentDatabaseError(REMEDIES[code], { cause: error });
  // The message of pg if the server asks for a password and the URL has none.
  if (message?.includes('client password must be'))
    return new PermanentDatabaseError(REMEDIES['28P01'], { cause: error });
  return null;
}
