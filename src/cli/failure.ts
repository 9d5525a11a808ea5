import type { Command } from 'commander';
import { EnvError } from '../config/env-error.js';
import { ApiError } from './api.js';
import { CliError } from './cli-error.js';

/** The lines that explain why a command failed, each with `error:`. */
export async function explain(error: unknown, command: Command | null): Promise<string> {
  const lines =
    error instanceof ApiError
      ? apiErrorLines(error, command)
      : [error instanceof CliError || error instanceof EnvError ? error.message : await localError(error)];
  return lines.map((line) => `error: ${line}`).join('\n');
}

function apiErrorLines({ status, message, details }: ApiError, command: Command | null): string[] {
  if (details.length === 0) {
    const hint =
      status === 401
        ? ' The command line reads it from POSTERN_ADMIN_TOKEN or POSTERN_ADMIN_TOKEN_FILE.'
        : '';
    return [message + hint];
  }
  return details.map(({ field, message }) => {
    if (field === 'body') return message;
    return `${inputName(field, command)}${message.startsWith('must ') ? '' : ':'} ${message}`;
  });
}

/** The option or the argument of a command that a field of the admin API comes from, as in `--sign-in: days`. */
function inputName(field: string, command: Command | null): string {
  const name = optionName(field, command);
  const [first] = command?.registeredArguments ?? [];
  // Before the options: every command has the option --url.
  if (first?.name() === name) return `<${name}>`;
  if (command?.options.some(({ long }) => long === `--${name}`)) {
    const [, ...members] = field.split('.');
    return members.length > 0 && HAVE_MEMBERS.has(name) ? `--${name}: ${members.join('.')}` : `--${name}`;
  }
  return first !== undefined && OF_THE_ARGUMENT.has(field) ? `<${first.name()}>` : field;
}

/** Options that set several fields, so that the name of the option alone does not say which is wrong. */
const HAVE_MEMBERS: ReadonlySet<string> = new Set(['sign-in', 'claude-code', 'self-service', 'claim']);

/** Fields of what the argument names that no option sets. */
const OF_THE_ARGUMENT: ReadonlySet<string> = new Set(['id', 'key', 'origin', 'ended_at', 'revoked_at']);

/** `cache.shared` comes from `--cache-shared`, `retry_on.0` from `--retry-on`, `auth_settings.region` from `--region`. */
function optionName(field: string, command: Command | null): string {
  const [first = '', ...rest] = field.replaceAll('_', '-').split('.');
  const names = [[first, ...rest].join('-'), first, RENAMED[first], first === 'auth-settings' && rest[0]];
  return (
    names.find((name) => command?.options.some(({ long }) => long === `--${name}`)) ||
    [first, ...rest].join('.')
  );
}

/** Options that are named otherwise than the fields that they set. */
const RENAMED: Readonly<Record<string, string>> = {
  'max-attempts': 'attempts',
  search: 'name',
  claims: 'claim',
  cidrs: 'cidr',
};

/** An error of the database or the folders on this machine; with a stack only if it is a bug. */
async function localError(error: unknown): Promise<string> {
  const { DataDirError } = await import('../platform/data-dir.js');
  const { permanentError } = await import('../database/permanent-database-error.js');
  const { describeError } = await import('../errors/describe-error.js');
  const { EmbeddedPostgresError } = await import('../embedded-postgres/embedded-postgres-error.js');
  const { isDatabaseUnavailable } = await import('../database/sql-state.js');
  const { ServiceError } = await import('../errors/service-error.js');
  const forOperators = [DataDirError, EmbeddedPostgresError, ServiceError];
  if (forOperators.some((kind) => error instanceof kind)) return (error as Error).message;
  const permanent = permanentError(error);
  if (permanent !== null) return permanent.message;
  if (isDatabaseUnavailable(error)) {
    return `Postgres cannot be reached: ${describeError(error)}. Start it, or correct DATABASE_URL.`;
  }
  return `Internal error, please report it: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
}
