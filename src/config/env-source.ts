import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
/**
 * Where do the variables come from? The real environment first, then `.env`, then, for secrets, the file that
 * `NAME_FILE` names. An empty value is an absent one: compose files and CI systems pass `NAME=` for "not set".
 */
export type RawEnv = Record<string, string | undefined>;

/** Names of the variables to read. */
export interface Variables {
  names: Iterable<string>;
  /** Those of them that may be given as `NAME_FILE`. */
  secrets: Iterable<string>;
  /** Given by the application; these win. */
  values?: RawEnv;
}

/** @param errors gets one line for each value that cannot be read */
export function gatherEnv(
  { names, secrets, values = {} }: Variables,
  source: NodeJS.ProcessEnv,
  dotenvPath: string | null,
  errors: string[],
): RawEnv {
  const fallback = dotenvPath === null ? {} : readDotenv(dotenvPath, errors);
  const given = (name: string): string | undefined =>
    values[name] ?? nonEmpty(source[name]) ?? nonEmpty(fallback[name]);

  const raw: RawEnv = {};
  for (const name of names) raw[name] = given(name);
  for (const name of secrets) {
    const file = given(`${name}_FILE`);
    if (file === undefined || values[name] !== undefined) continue;
    if (raw[name] !== undefined) {
      errors.push(`${name}: give either ${name} or ${name}_FILE, not both`);
      continue;
    }
    raw[name] = readSecret(name, file, errors);
  }
  return raw;
}

/** The environment of this process. Only this file reads it. */
export function processEnv(): NodeJS.ProcessEnv {
  return process.env;
}

function nonEmpty(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === '' ? undefined : value;
}

export function readDotenv(path: string, errors: string[]): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(path, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') errors.push(`.env: cannot be read (${code ?? 'error'}); check its permissions`);
    return {};
  }
}

function readSecret(name: string, path: string, errors: string[]): string | undefined {
  try {
    // One trailing newline is the editor's, not the secret's.
    const secret = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    if (nonEmpty(secret) !== undefined) return secret;
    errors.push(`${name}_FILE: the file is empty; write the secret into it`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    errors.push(`${name}_FILE: the file cannot be read (${code ?? 'error'}); check its path and permissions`);
  }
  return undefined;
}
