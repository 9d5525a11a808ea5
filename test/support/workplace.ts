import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.js';
import { type Account, GatewayProcess, killAll } from './process.js';

/** A temporary folder to start gateways in; nothing of it, nor of what was started on it, is left by remove(). */
export class Workplace {
  private constructor(readonly folder: string) {}

  static async make(): Promise<Workplace> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'postern-process-')));
    // Open to the account that Postgres runs as when these tests run as root: else its cluster would live elsewhere.
    await chmod(folder, 0o755);
    return new Workplace(folder);
  }

  get dataDir(): string {
    return join(this.folder, 'data');
  }

  /** Starts a gateway here, on `data` in this folder unless told otherwise. */
  gateway(env: Record<string, string> = {}, account?: Account, openFiles?: number): GatewayProcess {
    return GatewayProcess.spawn(this.folder, { DATA_DIR: this.dataDir, ...env }, account, openFiles);
  }

  /** Process id of the embedded Postgres, or null when none runs. */
  async postgresPid(): Promise<number | null> {
    const text = await readFile(join(await this.cluster(), 'postmaster.pid'), 'utf8').catch(() => '');
    const pid = Number(text.split('\n')[0]);
    return pid > 0 && isAlive(pid) ? pid : null;
  }

  /** Folder of the embedded cluster; elsewhere when the tests run as root in a place others cannot enter. */
  async cluster(): Promise<string> {
    return join((await this.elsewhere()) ?? join(this.dataDir, 'postgres'), 'cluster');
  }

  async remove(): Promise<void> {
    await killAll();
    const pid = await this.postgresPid();
    if (pid !== null) {
      process.kill(pid, 'SIGQUIT');
      await eventually(() => !isAlive(pid));
    }
    const elsewhere = await this.elsewhere();
    for (const folder of [elsewhere, this.folder]) {
      if (folder !== null) await rm(folder, { recursive: true, force: true });
    }
  }

  private async elsewhere(): Promise<string | null> {
    const location = await readFile(join(this.dataDir, 'postgres', 'location'), 'utf8').catch(() => '');
    return location.trim() || null;
  }
}

/** False for a zombie too: nothing of it runs any more. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
