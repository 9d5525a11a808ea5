import { DataDirError } from '../platform/data-dir.js';
import { EnvError } from '../config/env.js';
import { PermanentDatabaseError, permanentError } from '../database/permanent-database-error.js';
import { describeError } from '../errors/describe-error.js';
import { EmbeddedPostgresError } from '../embedded-postgres/embedded-postgres-error.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';
import { ServiceError } from '../errors/service-error.js';

const TOLD = [EnvError, DataDirError, PermanentDatabaseError, EmbeddedPostgresError];

/** What to tell people about a command that failed: one clear message; a stack only for what is our own fault. */
export function explain(error: unknown): string {
  if (error instanceof ServiceError) {
    if (error.kind !== 'invalid' || error.details.length === 0) return error.message;
    return error.details.map(({ field, message }) => `--${field.replaceAll('_', '-')} ${message}`).join('\n');
  }
  if (TOLD.some((kind) => error instanceof kind)) return (error as Error).message;
  const fault = permanentError(error);
  if (fault !== null) return fault.message;
  if (isDatabaseUnavailable(error)) {
    return `Postgres cannot be reached: ${describeError(error)}. Start it, or correct DATABASE_URL.`;
  }
  return `This should not have happened: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
