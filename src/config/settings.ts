import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type DataDir, openDataDir } from '../platform/data-dir.js';
import type { Env } from './env.js';

/** The environment with what was generated at the first start filled in, for one process. */
export type Settings = Omit<Env, 'workers'> & {
  readonly [Name in 'databaseUrl' | 'adminToken' | 'masterKey']: NonNullable<Env[Name]>;
} & {
  /** How many processes share the port. */
  readonly workers: number;
  /** Which of them this is, from 1. The first does what is to be done once. */
  readonly worker: number;
};

/** `auto` is one for each core that this process may use. */
export function workerCount({ workers }: Pick<Env, 'workers'>): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** Where a generated secret lies, and whether this start made it. */
export interface GeneratedSecrets {
  adminToken: string;
  adminTokenFile: string | null;
  masterKey: Settings['masterKey'];
}

/** Takes the admin token and the master key from the environment, else from the data folder, where they are made once. */
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
 * The master key of the gateway that has this environment, for commands: given, or lying in its data folder. Nothing is
 * made: what a command seals with a key of its own no gateway could open.
 */
export async function knownMasterKey(env: Env): Promise<Env['masterKey']> {
  // openDataDir() would make the folder.
  if (env.masterKey !== undefined || !existsSync(join(env.dataDir, 'postern-data'))) return env.masterKey;
  const kept = await (await openDataDir(env.dataDir)).keptSecret('master-key');
  return kept === null ? undefined : Buffer.from(kept, 'base64');
}
