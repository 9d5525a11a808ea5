import { resolve } from 'node:path';
import type { z } from 'zod';
import { envSchema, type EnvVariable } from './env-schema.js';
import { gatherEnv, type RawEnv } from './env-source.js';
import { parseModuleSettings } from './module-settings.js';

/**
 * The only reader of `process.env`. The loader's result; modules receive it, completed, as `Settings`.
 */
type Values = z.output<typeof envSchema>;

/** PROVIDER_URL → providerUrl */
export type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<S>;

export type Env = Readonly<
  { [Name in Exclude<EnvVariable, 'MIGRATE' | 'TRUSTED_PROXIES'> as CamelCase<Name>]: Values[Name] } & {
    migrate: boolean;
    trustedProxies: readonly string[];
    /** What feature modules declared with ConfigModule.forFeature(), by the names of the variables. */
    moduleSettings: Readonly<Record<string, unknown>>;
  }
>;

/** Settings that cannot work. The message lists every fault, one line each: variable and remedy, never a value. */
export class EnvError extends Error {
  constructor(readonly faults: readonly string[]) {
    super(
      `The environment has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n  ${faults.join('\n  ')}`,
    );
    this.name = 'EnvError';
  }
}

const MAKES_SECRETS = 'npm run init:env makes secrets';
const REQUIRED_IN_PRODUCTION = {
  DATABASE_URL: 'such as postgres://user:password@host:5432/database',
  ADMIN_TOKEN: MAKES_SECRETS,
  MASTER_KEY: MAKES_SECRETS,
} as const;

/**
 * Reads and checks every variable at once. Throws EnvError.
 * `.env` of the working folder is read for the process's own environment only: a source that is handed in
 * (tests, benchmarks) is complete by itself unless a file is named.
 */
export function loadEnv(
  source: NodeJS.ProcessEnv = process.env,
  dotenvPath: string | null = source === process.env ? resolve('.env') : null,
): Env {
  const faults: string[] = [];
  const raw = gatherEnv(source, dotenvPath, faults);
  const parsed = envSchema.safeParse(raw);
  for (const issue of parsed.error?.issues ?? []) faults.push(`${issue.path.join('.')}: ${issue.message}`);
  checkTogether(raw, faults);
  const moduleSettings = parseModuleSettings(raw, faults);
  if (!parsed.success || faults.length > 0) throw new EnvError(faults);
  return toEnv(parsed.data, moduleSettings);
}

/** Rules between variables. They look at the raw values, so that they are reported next to a malformed one. */
function checkTogether(raw: RawEnv, faults: string[]): void {
  if (raw.NODE_ENV?.trim() === 'production') {
    for (const [name, remedy] of Object.entries(REQUIRED_IN_PRODUCTION)) {
      const alreadyNamed = faults.some(
        (fault) => fault.startsWith(`${name}:`) || fault.startsWith(`${name}_FILE:`),
      );
      if (raw[name] === undefined && !alreadyNamed) {
        faults.push(`${name}: must be set when NODE_ENV=production; ${remedy}`);
      }
    }
  }
  // A secret without an address would be silently unused, and the operator would wonder about the 503s.
  if (raw.PROVIDER_KEY !== undefined && raw.PROVIDER_URL === undefined) {
    faults.push('PROVIDER_URL: must be set when PROVIDER_KEY is, such as https://api.openai.com');
  }
}

function toEnv(values: Values, moduleSettings: Env['moduleSettings']): Env {
  const env: Record<string, unknown> = { moduleSettings };
  for (const [name, value] of Object.entries(values)) env[camelCase(name)] = value;
  env.migrate = values.MIGRATE === 'on';
  env.trustedProxies = Object.freeze(values.TRUSTED_PROXIES);
  // Asking for the admin roads on the port they are on anyway means one listener. Port 0 is a new one each time.
  env.adminPort = values.ADMIN_PORT === values.PORT && values.PORT !== 0 ? undefined : values.ADMIN_PORT;
  return Object.freeze(env) as Env;
}

/** PROVIDER_URL → providerUrl */
export function camelCase(name: string): string {
  return name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
