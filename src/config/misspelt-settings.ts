import { resolve } from 'node:path';
import { envSchema, SECRET_VARIABLES } from './env-schema.js';
import { processEnv, readDotenv } from './env-source.js';
import type { DeclaredSettings } from './module-settings.js';

/** Not of the gateway, but of the command line and of docker-compose.yml, which read the same `.env`. */
const OF_OTHERS = [
  'POSTERN_URL',
  'POSTERN_ADMIN_TOKEN',
  'POSTERN_ADMIN_TOKEN_FILE',
  'POSTGRES_PASSWORD',
  'PUBLISH',
];
const FAR = 2;
/** Shorter names are a letter apart at most: HOME and PATH are not HOST and PORT. */
const LONG = 6;

/**
 * Finds names in the environment that are almost a setting's, and names in `.env` that are no setting at all. Nothing else
 * would say that such a line has no effect.
 *
 * @param declared settings of modules
 * @returns one line for each, with names only
 */
export function misspeltSettings(
  declared: readonly DeclaredSettings[],
  source: NodeJS.ProcessEnv = processEnv(),
  dotenvPath: string | null = source === processEnv() ? resolve('.env') : null,
): string[] {
  const secrets = [...SECRET_VARIABLES, ...declared.flatMap((one) => one.secrets)];
  const known = [
    ...Object.keys(envSchema.shape),
    ...declared.flatMap((one) => one.names),
    ...secrets.map((name) => `${name}_FILE`),
    ...OF_OTHERS,
  ];
  // What cannot be read is reported with the settings.
  const inFile = Object.keys(dotenvPath === null ? {} : readDotenv(dotenvPath, []));
  const unknown = new Set([...inFile, ...Object.keys(source)].filter((name) => !known.includes(name)));
  return [...unknown].flatMap((name) => {
    const where = inFile.includes(name) ? ' in .env' : '';
    const near = nearest(name, known);
    if (near !== undefined) return `${name}${where} is not a setting; did you mean ${near}?`;
    return where === '' ? [] : `${name}${where} is not a setting; see docs/reference/settings.md`;
  });
}

function nearest(name: string, known: readonly string[]): string | undefined {
  const allowed = name.length < LONG ? 1 : FAR;
  return known
    .map((one) => ({ one, distance: distance(name.toUpperCase(), one) }))
    .filter((found) => found.distance <= allowed)
    .sort((a, b) => a.distance - b.distance)[0]?.one;
}

/** Letters to insert, remove or replace (Levenshtein). More than FAR only if the lengths say so. */
function distance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > FAR) return FAR + 1;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
