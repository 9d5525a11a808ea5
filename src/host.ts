import { CloseStack } from './platform/close-stack.js';
import { openDataDir } from './platform/data-dir.js';
import type { Env } from './config/env.js';
import { generatedSecrets, type Settings, workerCount } from './config/settings.js';
import { tryPorts } from './listen.js';

/** What all processes of one instance share: the data folder, the secrets in it, the embedded Postgres. */
export interface Host {
  readonly settings: Settings;
  /** Where the generated admin token lies; null when it was given. */
  readonly adminTokenFile: string | null;
  /** Ends the embedded Postgres and lets go of the folder. */
  close(): Promise<void>;
}

/**
 * Takes the data folder and starts what lives in it.
 *
 * @param report gets one line for each step that an operator wants to see
 * @throws an Error whose message names the remedy; nothing is left running then
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
      // Only here: a gateway that has its own Postgres does not load this code.
      const { startEmbeddedPostgres } = await import('./embedded-postgres/embedded-postgres.js');
      const embedded = await startEmbeddedPostgres({ dataDir: dataDir.path, report });
      opened.add(() => embedded.stop());
      databaseUrl = embedded.url;
    }
    const settings = { ...env, ...secrets, databaseUrl, worker: 1, workers: workerCount(env) };
    return { settings, adminTokenFile, close: () => opened.close() };
  } catch (error) {
    await Promise.allSettled([opened.close()]);
    throw error;
  }
}
