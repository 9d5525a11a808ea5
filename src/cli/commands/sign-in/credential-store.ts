import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { userFolder } from '../../../config/user-folder.js';
import { FolderLock } from '../../../platform/folder-lock.js';
import { patience } from '../../../platform/patience.js';
import { CliError } from '../../cli-error.js';

/** What this user has of one gateway. */
export interface StoredSignIn {
  accessToken: string;
  refreshToken: string;
  /** ISO 8601 */
  issuedAt: string;
  /** ISO 8601; when the access token ends. */
  expiresAt: string;
  tokenEndpoint: string;
  revocationEndpoint: string;
  email: string | null;
}

/** Sign-ins by the base URL of their gateway; the last one first. */
type Stored = [url: string, signIn: StoredSignIn][];

const LOCK_EVERY_MS = 50;
const LOCK = patience('another command with these sign-ins', 30_000);

/** The sign-ins of this user, in a file that only they can read. */
export class CredentialStore {
  private readonly folder = userFolder();
  private readonly file = join(this.folder, 'credentials.json');

  /** @param url of the gateway; undefined: the one signed in to last @throws CliError if there is none */
  async find(url: string | undefined): Promise<{ url: string; signIn: StoredSignIn }> {
    const stored = await this.read();
    const found = url === undefined ? stored[0] : stored.find(([one]) => one === url);
    if (found !== undefined) return { url: found[0], signIn: found[1] };
    const remedy = `postern sign-in ${url ?? '<url of the gateway>'}`;
    throw new CliError(`You are not signed in${url === undefined ? '' : ` to ${url}`}. Run: ${remedy}`);
  }

  /** What there is of one gateway, if anything. */
  async get(url: string): Promise<StoredSignIn | undefined> {
    return (await this.read()).find(([one]) => one === url)?.[1];
  }

  /** @param signIn null removes it */
  async save(url: string, signIn: StoredSignIn | null): Promise<void> {
    const others = (await this.read()).filter(([one]) => one !== url);
    const stored: Stored = signIn === null ? others : [[url, signIn], ...others];
    // Never half of it, and never readable by others in between.
    const draft = join(this.folder, `credentials-${process.pid}.tmp`);
    try {
      await writeFile(draft, `${JSON.stringify(stored, null, 2)}\n`, { mode: 0o600, flag: 'wx' });
      await rename(draft, this.file);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  /** Renews where the order of the sign-ins stays. */
  async replace(url: string, signIn: StoredSignIn): Promise<void> {
    const [first] = await this.read();
    await this.save(url, signIn);
    if (first !== undefined && first[0] !== url) await this.save(...first);
  }

  /**
   * Runs one process of this user at a time: two shells would renew with the same refresh token.
   *
   * @throws CliError if another does not end
   */
  async alone<T>(work: () => Promise<T>): Promise<T> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const lock = new FolderLock(join(this.folder, 'lock'));
    const until = Date.now() + LOCK.ms;
    for (let holder = await lock.take(); holder !== null; holder = await lock.take()) {
      if (Date.now() > until)
        throw new CliError(`Another postern (process ${holder.pid}) is busy with your sign-ins. Try again.`);
      await sleep(LOCK_EVERY_MS);
    }
    try {
      return await work();
    } finally {
      lock.release();
    }
  }

  private async read(): Promise<Stored> {
    let text: string;
    try {
      text = await readFile(this.file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
    try {
      return JSON.parse(text) as Stored;
    } catch {
      throw new CliError(`${this.file} is damaged. Delete it, and sign in again.`);
    }
  }
}
