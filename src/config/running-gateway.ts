import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DataDir } from '../platform/data-dir.js';
import type { Env } from './env.js';

/** What a running gateway publishes in its DATA_DIR for commands on the same machine. */
interface Published {
  /** Base URL of the admin API. */
  url: string;
  /** See fingerprint(). */
  settings: string;
}

type Shared = Pick<Env, 'databaseUrl' | 'adminToken'>;

/** Publishes the URL of a gateway that holds this folder; null: it no longer serves. */
export function publishGateway(dataDir: DataDir, url: string | null, env: Shared): void {
  dataDir.publish(
    url === null ? null : ({ url: onThisMachine(url), settings: fingerprint(env) } satisfies Published),
  );
}

/**
 * The admin API of the gateway that runs on this folder.
 *
 * @returns null if none runs, or if it does not have the database and the admin token of these settings
 */
export async function findRunningGateway(
  dataDir: DataDir,
  env: Shared,
): Promise<{ url: string; token: string } | null> {
  const published = ((await dataDir.holder())?.published ?? null) as Published | null;
  const token = env.adminToken ?? (await dataDir.keptSecret('admin-token'));
  if (published === null || token === null) return null;
  const [theirs, ours] = [published.settings, fingerprint({ ...env, adminToken: token })].map((hex) =>
    Buffer.from(hex, 'hex'),
  );
  const isSame = theirs!.length === ours!.length && timingSafeEqual(theirs!, ours!);
  return isSame ? { url: published.url, token } : null;
}

/**
 * Proves that two processes have the same database and the same admin token without revealing either. No DATABASE_URL is
 * the embedded database of the folder.
 */
function fingerprint({ databaseUrl, adminToken }: Shared): string {
  return createHmac('sha256', adminToken ?? '')
    .update(databaseUrl ?? '')
    .digest('hex');
}

/** A gateway that listens on all addresses is reached on the loopback address. */
function onThisMachine(url: string): string {
  const at = new URL(url);
  if (at.hostname === '0.0.0.0') at.hostname = '127.0.0.1';
  if (at.hostname === '[::]') at.hostname = '[::1]';
  return at.origin;
}
