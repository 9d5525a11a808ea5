import { DataDirError } from '../platform/data-dir.js';
import { EnvError } from '../config/env.js';
import { PermanentDatabaseError, permanentError } from '../database/permanent-database-error.js';
import { describeError } from '../errors/describe-error.js';
import { EmbeddedPostgresError } from '../embedded-postgres/embedded-postgres-error.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';
import { ServiceError } from '../errors/service-error.js';

/** Errors whose message is written for operators. */
const OPERATOR_ERRORS = [EnvError, DataDirError, PermanentDatabaseError, EmbeddedPostgresError];

/** The message for a command that failed; with a stack only if the error is a bug. */
export function explain(error: unknown): string {
  if (error instanceof ServiceError) {
    if (error.kind !== 'invalid' || error.details.length === 0) return error.message;
    return error.details.map(({ field, message }) => `--${field.replaceAll('_', '-')} ${message}`).join('\n');
  }
  if (OPERATOR_ERRORS.some((kind) => error instanceof kind)) return (error as Error).message;
  const permanent = permanentError(error);
  if (permanent !== null) return permanent.message;
  if (isDatabaseUnavailable(error)) {
    return `Postgres cannot be reached: ${describeError(error)}. Start it, or correct DATABASE_URL.`;
  }
  return `Internal error, please report it: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
