import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type DataDir, openDataDir } from '../platform/data-dir.js';
import { type CamelCase, camelCase, type Env } from './env.js';
import { EnvError } from './env-error.js';
import { envSchema, type EnvVariable } from './env-schema.js';

/**
 * The settings of a module, in the gateway and in a command: the environment with the values of this process. A gateway
 * always has an admin token and a master key; a command may run without them.
 */
export type Settings = Omit<Env, 'workers' | 'databaseUrl'> & {
  readonly databaseUrl: string;
  /** How many processes share the port. */
  readonly workers: number;
  /** Number of this process, from 1. The first one does work that must be done once. */
  readonly worker: number;
};

/**
 * The URL of connections that need a session of their own in Postgres: notifications, advisory locks, named statements.
 * A pooler in transaction mode keeps none of these.
 */
export function directUrl({
  databaseUrl,
  databaseDirectUrl,
}: Pick<Settings, 'databaseUrl' | 'databaseDirectUrl'>): string {
  return databaseDirectUrl ?? databaseUrl;
}

/** The value of a required setting. @throws Error if it is missing */
export function required<Name extends 'adminToken' | 'masterKey'>(
  settings: Settings,
  name: Name,
): NonNullable<Settings[Name]> {
  const value = settings[name];
  if (value === undefined) throw new Error(`the setting ${name} is missing`);
  return value;
}

/** The settings by the names of their environment variables, as ConfigService returns them. */
export type ConfigValues = { readonly [Name in EnvVariable]: Settings[CamelCase<Name>] };

export function settingsByName(settings: Settings): ConfigValues & Record<string, unknown> {
  const names = Object.keys(envSchema.shape) as EnvVariable[];
  const values = names.map((name) => [name, settings[camelCase(name) as keyof Settings]]);
  return { ...settings.moduleSettings, ...(Object.fromEntries(values) as ConfigValues) };
}

/** `auto` is one process per available core. */
export function workerCount({ workers }: Pick<Env, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** The generated secrets; adminTokenFile is null if the token was set. */
export interface GeneratedSecrets {
  adminToken: string;
  adminTokenFile: string | null;
  masterKey: NonNullable<Settings['masterKey']>;
}

/** Reads the admin token and the master key from the environment, else from DATA_DIR, where they are generated once. */
export async function generatedSecrets(env: Env, dataDir: DataDir): Promise<GeneratedSecrets> {
  const adminToken = env.adminToken
    ? null
    : await dataDir.secret('admin-token', () => randomBytes(24).toString('base64url'));
  const masterKey =
    env.masterKey ??
    Buffer.from(
      (await dataDir.secret('master-key', () => randomBytes(32).toString('base64'))).value,
      'base64',
    );
  return {
    adminToken: env.adminToken ?? adminToken!.value,
    adminTokenFile: adminToken?.file ?? null,
    masterKey,
  };
}

/**
 * The master key of the gateway with this environment, for commands: from the environment or DATA_DIR. None is generated:
 * no gateway could decrypt what a command encrypts with its own key.
 */
export async function knownMasterKey(env: Env): Promise<Env['masterKey']> {
  // openDataDir() would create the folder.
  if (env.masterKey !== undefined || !existsSync(join(env.dataDir, 'postern-data'))) return env.masterKey;
  const kept = await (await openDataDir(env.dataDir)).keptSecret('master-key');
  return kept === null ? undefined : Buffer.from(kept, 'base64');
}

/**
 * The settings of one process that serves alone.
 *
 * @throws EnvError without DATABASE_URL
 */
export async function completeSettings(env: Env): Promise<Settings> {
  const { databaseUrl } = env;
  if (databaseUrl === undefined)
    throw new EnvError(['DATABASE_URL: must be set; only PosternFactory.run() starts an embedded Postgres']);
  const { adminToken, masterKey } = await generatedSecrets(env, await openDataDir(env.dataDir));
  return { ...env, databaseUrl, adminToken, masterKey, worker: 1, workers: 1 };
}
