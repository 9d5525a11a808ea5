import { randomBytes } from 'node:crypto';
import type { DataDir } from './data-dir.js';
import type { Env } from './env.js';

/** The environment with what was generated at the first start filled in. */
export type Settings = Env & {
  readonly [Name in 'databaseUrl' | 'adminToken' | 'masterKey']: NonNullable<Env[Name]>;
};

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
