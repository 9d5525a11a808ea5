/** SQLSTATEs of temporary errors (PostgreSQL documentation, appendix A); whole classes by two characters. */
const TEMPORARY = new Set([
  '08', // connection exceptions
  '40', // rolled back, so that another transaction could go on
  '53', // out of connections, memory or disk
  '57', // shutting down, starting up, or the query took too long
  '25P03', // the process was frozen in a transaction
  '25006', // a standby that is not the primary yet
]);

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Errors that `pg` (pool and client) and TypeORM report with a message only, without a code. */
const WORDS =
  /^(Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|Client has encountered a connection error|Driver not Connected|Cannot use a pool after calling end)/;

/** Errors that TypeORM throws without a connection, or between two statements of a transaction that lost its connection. */
const NAMES = new Set([
  'CannotExecuteNotConnectedError',
  'DatabaseNotReadyError',
  'QueryRunnerAlreadyReleasedError',
  'QueryRunnerProviderAlreadyReleasedError',
]);

/** True if Postgres is unavailable, still starting or too slow: the statement may succeed later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const { message, name, errors } = (error ?? {}) as Partial<AggregateError>;
  const code = codeOf(error);
  if (code !== undefined) {
    return (
      TEMPORARY.has(code) || (code.length === 5 && TEMPORARY.has(code.slice(0, 2))) || UNREACHABLE.has(code)
    );
  }
  // Node throws an AggregateError if no address of a host name accepts the connection.
  if (Array.isArray(errors)) return errors.some(isDatabaseUnavailable);
  return WORDS.test(message ?? '') || NAMES.has(name ?? '');
}

/** True if the statement violated this unique constraint. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return codeOf(error) === '23505' && (error as { constraint?: string }).constraint === constraint;
}

/** True if a text has a character that a column of the database cannot hold. In a UTF-8 database, that is U+0000 alone. */
export function isUnstorableText(error: unknown): boolean {
  const code = codeOf(error);
  // character_not_in_repertoire, and untranslatable_character, which jsonb reports
  return code === '22021' || code === '22P05';
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
