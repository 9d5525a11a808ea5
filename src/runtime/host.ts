import { CloseStack } from './close-stack.js';
import { openDataDir } from '../platform/data-dir.js';
import { publishGateway } from '../config/running-gateway.js';
import type { Env } from '../config/env.js';
import { generatedSecrets, type Settings, workerCount } from '../config/settings.js';
import { tryPorts } from './listen.js';

/** What all processes of one instance share: DATA_DIR, the secrets in it, the embedded Postgres. */
export interface Host {
  readonly settings: Settings;
  /** File of the generated admin token; null if ADMIN_TOKEN is set. */
  readonly adminTokenFile: string | null;
  /** Lets commands on this machine find the gateway; null: no longer. @param url of the admin API */
  publish(url: string | null): void;
  /** Stops the embedded Postgres and releases DATA_DIR. */
  close(): Promise<void>;
}

/**
 * Locks DATA_DIR and starts the embedded Postgres in it if DATABASE_URL is not set.
 *
 * @param report gets one line for each slow step
 * @throws an Error whose message names the remedy; nothing is left running
 */
export async function openHost(env: Env, report: (line: string) => void): Promise<Host> {
  const opened = new CloseStack();
  try {
    const dataDir = await openDataDir(env.dataDir);
    await dataDir.hold();
    opened.add(() => dataDir.release());
    const { adminTokenFile, ...secrets } = await generatedSecrets(env, dataDir);
    let { databaseUrl } = env;
    if (databaseUrl === undefined) {
      await tryPorts(env);
      // Imported here, because a gateway with DATABASE_URL does not need this code.
      const { startEmbeddedPostgres } = await import('../embedded-postgres/embedded-postgres.js');
      const embedded = await startEmbeddedPostgres({ dataDir: dataDir.path, report });
      opened.add(() => embedded.stop());
      databaseUrl = embedded.url;
    }
    const settings = { ...env, ...secrets, databaseUrl, worker: 1, workers: workerCount(env) };
    return {
      settings,
      adminTokenFile,
      publish: (url) => publishGateway(dataDir, url, { ...env, adminToken: secrets.adminToken }),
      close: () => opened.close(),
    };
  } catch (error) {
    await Promise.allSettled([opened.close()]);
    throw error;
  }
}
