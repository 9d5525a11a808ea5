/** SQLSTATEs (PostgreSQL documentation, appendix A) that a repetition may mend; whole classes by two letters. */
const PASSING = new Set([
  '08', // connection exceptions
  '53', // out of connections, memory or disk
  '57', // shutting down, starting up, or the query took too long
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

/** Faults that `pg` (pool and client) and TypeORM report in words only, without a code. */
const WORDS =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Driver not Connected|Cannot use a pool after calling end)/;

/** What TypeORM throws before a connection is made, and between two statements of a transaction whose connection broke. */
const NAMES = new Set([
  'CannotExecuteNotConnectedError',
  'QueryRunnerAlreadyReleasedError',
  'QueryRunnerProviderAlreadyReleasedError',
]);

/** True when Postgres is away, not started yet or too slow: the order may well succeed a little later. */
export function isDatabaseAway(error: unknown): boolean {
  const { message, name, errors } = (error ?? {}) as Partial<AggregateError>;
  const code = codeOf(error);
  if (code !== undefined) {
    return PASSING.has(code) || (code.length === 5 && PASSING.has(code.slice(0, 2))) || UNREACHABLE.has(code);
  }
  // Node gives an AggregateError when every address of a name refused.
  if (Array.isArray(errors)) return errors.some(isDatabaseAway);
  return WORDS.test(message ?? '') || NAMES.has(name ?? '');
}

/** True when the order met this unique constraint: somebody was first. */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return codeOf(error) === '23505' && (error as { constraint?: string }).constraint === constraint;
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
