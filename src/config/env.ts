import { resolve } from 'node:path';
import type { z } from 'zod';
import { EnvError } from './env-error.js';
import { envSchema, type EnvVariable, SECRET_VARIABLES } from './env-schema.js';
import { gatherEnv, processEnv, type RawEnv } from './env-source.js';
import { type DeclaredSettings, parseModuleSettings, rejectTwice } from './module-settings.js';

/** Modules receive the result, completed, as `Settings`. */
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

/**
 * Settings that an application gives in its code, by the names of the properties of the settings: `{ port: 8080, logLevel:
 * 'info' }`. A value has the form that its environment variable has. They win over the environment.
 */
export type PosternOptions = {
  readonly [Name in Exclude<EnvVariable, 'MODULES'> as CamelCase<Name>]?:
    | string
    | Extract<Values[Name], string | number>;
};

const GENERATES_SECRETS = 'npm run init:env generates secrets';
const REQUIRED_IN_PRODUCTION = {
  DATABASE_URL: 'for example postgres://user:password@host:5432/database',
  ADMIN_TOKEN: GENERATES_SECRETS,
  MASTER_KEY: GENERATES_SECRETS,
} as const;

/** What is known besides the environment. */
export interface Given {
  /** The variables of modules. */
  declared?: readonly DeclaredSettings[];
  options?: PosternOptions;
}

/**
 * Reads and validates all variables. `.env` in the working directory is read only for `process.env`: another source
 * (tests, benchmarks) is complete by itself unless a file is named.
 *
 * @throws EnvError
 */
export function loadEnv(
  source: NodeJS.ProcessEnv = processEnv(),
  dotenvPath: string | null = source === processEnv() ? resolve('.env') : null,
  { declared = [], options = {} }: Given = {},
): Env {
  rejectTwice(declared);
  const errors: string[] = [];
  const names = [...Object.keys(envSchema.shape), ...declared.flatMap((one) => one.names)];
  const secrets = [...SECRET_VARIABLES, ...declared.flatMap((one) => one.secrets)];
  const raw = gatherEnv({ names, secrets, values: byVariable(options, errors) }, source, dotenvPath, errors);
  const parsed = envSchema.safeParse(raw);
  for (const issue of parsed.error?.issues ?? []) errors.push(`${issue.path.join('.')}: ${issue.message}`);
  checkCombinations(raw, errors);
  const moduleSettings = parseModuleSettings(declared, raw, errors);
  if (!parsed.success || errors.length > 0) throw new EnvError(errors);
  return toEnv(parsed.data, moduleSettings);
}

/** The options by the names of their variables. */
function byVariable(options: PosternOptions, errors: string[]): RawEnv {
  const variables = new Map(Object.keys(envSchema.shape).map((name) => [camelCase(name), name]));
  const values: RawEnv = {};
  for (const [option, value] of Object.entries(options)) {
    const name = variables.get(option);
    if (name === 'MODULES')
      errors.push(`${option}: is no option, because it is read first; import modules in the root module`);
    else if (name === undefined) errors.push(`${option}: is not an option; see docs/reference/settings.md`);
    else if (typeof value === 'string' || typeof value === 'number') values[name] = String(value);
    else if (value !== undefined) errors.push(`${option}: must be a string or a number`);
  }
  return values;
}

/** Rules between variables. They use the raw values, so that they are reported together with malformed ones. */
function checkCombinations(raw: RawEnv, errors: string[]): void {
  if (raw.NODE_ENV?.trim() === 'production') {
    for (const [name, remedy] of Object.entries(REQUIRED_IN_PRODUCTION)) {
      const alreadyNamed = errors.some(
        (error) => error.startsWith(`${name}:`) || error.startsWith(`${name}_FILE:`),
      );
      if (raw[name] === undefined && !alreadyNamed) {
        errors.push(`${name}: must be set when NODE_ENV=production; ${remedy}`);
      }
    }
  }
  // The embedded Postgres has no pooler.
  if (raw.DATABASE_DIRECT_URL !== undefined && raw.DATABASE_URL === undefined) {
    errors.push('DATABASE_URL: must be set when DATABASE_DIRECT_URL is set; it may lead through a pooler');
  }
  // A secret without a URL would be unused, and every call would get 503.
  if (raw.PROVIDER_KEY !== undefined && raw.PROVIDER_URL === undefined) {
    errors.push('PROVIDER_URL: must be set when PROVIDER_KEY is set, for example https://api.openai.com');
  }
  if (raw.PROVIDER_KEY !== undefined && raw.PROVIDER_AUTH?.trim() === 'client') {
    errors.push(
      'PROVIDER_KEY: must not be set with PROVIDER_AUTH=client, because callers send their own credential',
    );
  }
  if (raw.SIGN_IN?.trim() === 'on') {
    // Teams come from groups with the prefix only, those of administrators too.
    for (const name of ['OIDC_ISSUER', 'PUBLIC_URL', 'OIDC_TEAM_PREFIX'] as const) {
      if (raw[name] === undefined) errors.push(`${name}: must be set when SIGN_IN=on`);
    }
  }
  if (raw.OIDC_ISSUER !== undefined) {
    for (const name of ['PUBLIC_URL', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'] as const) {
      if (raw[name] === undefined) errors.push(`${name}: must be set when OIDC_ISSUER is set`);
    }
    // Otherwise nobody could sign in.
    const { OIDC_ADMINS, OIDC_VIEWERS, OIDC_TEAM_PREFIX: team, OIDC_LEAD_PREFIX: lead } = raw;
    if ([OIDC_ADMINS, OIDC_VIEWERS, team, lead].every((value) => value === undefined))
      errors.push(
        'OIDC_ADMINS: it, OIDC_VIEWERS, OIDC_TEAM_PREFIX or OIDC_LEAD_PREFIX must be set when OIDC_ISSUER is set',
      );
    // A group of leads would name a team of members as well, or the other way round.
    if (team && lead && (team.startsWith(lead) || lead.startsWith(team)))
      errors.push('OIDC_LEAD_PREFIX: neither it nor OIDC_TEAM_PREFIX may begin with the other');
  } else if (raw.OIDC_CLIENT_ID !== undefined) {
    errors.push('OIDC_ISSUER: must be set when OIDC_CLIENT_ID is set, for example https://login.example.com');
  }
}

function toEnv(values: Values, moduleSettings: Env['moduleSettings']): Env {
  const env: Record<string, unknown> = { moduleSettings };
  for (const [name, value] of Object.entries(values)) env[camelCase(name)] = value;
  env.migrate = values.MIGRATE === 'on';
  env.trustedProxies = Object.freeze(values.TRUSTED_PROXIES);
  // ADMIN_PORT equal to PORT means one listener. Port 0 is a new port each time.
  env.adminPort = values.ADMIN_PORT === values.PORT && values.PORT !== 0 ? undefined : values.ADMIN_PORT;
  return Object.freeze(env) as Env;
}

/** PROVIDER_URL → providerUrl */
export function camelCase(name: string): string {
  return name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
