import { createHash, randomBytes } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, realpath, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { createOnce } from './create-once.js';
import { patience } from './patience.js';

export interface LockHolder {
  pid: number;
  /** ISO 8601 */
  startedAt: string;
  /** What the holder has published, see FolderLock.publish(). Whoever may enter the folder can read it. */
  published?: unknown;
}

interface Claim extends LockHolder {
  /** The holder's socket: a name in the lock's folder, or a whole path where that would have been too long. */
  socket: string;
}

/** sockaddr_un.sun_path holds 108 bytes on Linux and 104 on macOS, the closing NUL included. */
const MAX_SOCKET_PATH_LENGTH = 100;
/** A holder whose event loop is busy still owns its lock: after this time its claim file is believed. */
const RESPONSE_TIMEOUT = patience('the holder of a folder lock', 500);

/**
 * A lock between processes that dies with its owner: a listening Unix socket. A dead owner refuses connections,
 * whichever way it died; a pid file proves nothing in containers, and Node has no flock.
 *
 * The socket alone cannot be taken over safely: two starters both find it stale, one replaces it, the other then
 * removes the fresh one. So sockets have random names that are never used twice, and processes compete for the
 * numbered files `claim-1`, `claim-2`, … each naming a socket. The owner is the highest claim whose socket answers.
 *
 * 1. A claim is linked, complete, when its socket already listens; link(2) lets one process have each number. So
 *    "refused" means dead for ever, and never "not listening yet".
 * 2. A starter that finds the highest claim n dead takes n + 1. Losing that, it looks again.
 * 3. Only a later owner deletes claims, and only lower ones; a release leaves the claim behind, dead. So the
 *    highest number never falls. A slow starter may still get a low number that was deleted meanwhile; then it
 *    sees a higher one when it looks again after linking, and gives its own up.
 */
export class FolderLock {
  private server: Server | undefined;
  private published: unknown;

  /** @param folder a folder of the lock's own; made (0700) when the lock is first taken */
  constructor(private readonly folder: string) {}

  /** Null when the lock is now ours (or already was); else who has it. */
  async take(): Promise<LockHolder | null> {
    if (this.server !== undefined) return null;
    await mkdir(this.folder, { mode: 0o700 }).catch(unless('EEXIST'));
    const path = await this.newSocketPath();
    // A socket elsewhere can be read by every user of the machine.
    const isInside = dirname(path) === (await realpath(this.folder));
    const server = await listen(path, () => (isInside ? this.published : undefined));
    try {
      const holder = await this.claim(path);
      if (holder === null) this.server = server;
      return holder;
    } finally {
      if (this.server !== server) server.close();
    }
  }

  /** Sets what holder() reports of this process, until it releases the lock. */
  publish(value: unknown): void {
    this.published = value;
  }

  /** Who has the lock, without taking it. */
  async holder(): Promise<LockHolder | null> {
    for (;;) {
      const top = await this.highestClaim();
      const claim = top === 0 ? null : await this.read(top);
      if (claim !== 'gone') return claim && ask(claim);
    }
  }

  release(): void {
    // Listening ends, and the socket's file goes, within this call (libuv unlinks what it bound); the callback of
    // close() would also wait for whoever is just asking.
    this.server?.close();
    this.server = undefined;
  }

  private async claim(path: string): Promise<LockHolder | null> {
    const real = await realpath(this.folder);
    const socket = path.startsWith(real) ? basename(path) : path;
    const content = JSON.stringify({ ...ourselves(), socket } satisfies Claim);
    for (;;) {
      const top = await this.highestClaim();
      const previous = top === 0 ? null : await this.read(top);
      if (previous === 'gone') continue;
      const holder = previous && (await ask(previous));
      if (holder !== null) return holder;
      const mine = top + 1;
      if (!(await createOnce(this.file(mine), content, { mode: 0o644, durable: false }))) continue;
      if ((await this.highestClaim()) === mine) {
        await this.removeBelow(mine);
        return null;
      }
      await rm(this.file(mine), { force: true });
    }
  }

  /** Claims below ours, with the sockets of the dead. A living socket below ours is a slow starter's: it needs it. */
  private async removeBelow(mine: number): Promise<void> {
    for (const number of await this.claimNumbers()) {
      if (number >= mine) continue;
      const claim = await this.read(number);
      if (claim !== 'gone' && claim !== null && (await ask(claim)) === null)
        await rm(claim.socket, { force: true });
      await rm(this.file(number), { force: true });
    }
  }

  private file(number: number): string {
    return join(this.folder, `claim-${number}`);
  }

  private async claimNumbers(): Promise<number[]> {
    const names = await readdir(this.folder).catch(unless('ENOENT'));
    return (names ?? []).flatMap((name) => /^claim-(\d+)$/.exec(name)?.[1] ?? []).map(Number);
  }

  private async highestClaim(): Promise<number> {
    return Math.max(0, ...(await this.claimNumbers()));
  }

  /** The claim with its socket as a whole path; null for one that nobody can own; 'gone' when just deleted. */
  private async read(number: number): Promise<Claim | null | 'gone'> {
    const text = await readFile(this.file(number), 'utf8').catch(unless('ENOENT'));
    if (text === undefined) return 'gone';
    try {
      const claim = JSON.parse(text) as Claim;
      if (!isAbsolute(claim.socket))
        return { ...claim, socket: join(await realpath(this.folder), claim.socket) };
      // A copy of the folder names the socket of the original: that one guards another folder.
      if (!basename(claim.socket).startsWith(await this.prefix())) return null;
      return (await this.isForeign(claim.socket, number)) ? null : claim;
    } catch {
      return null; // Claims are not fsynced: this one was torn by a power loss, which its owner did not survive.
    }
  }

  /**
   * Whether a socket outside the folder is of neither the claim's user, root nor us: any user could listen there once the
   * holder is gone. False if that cannot be determined.
   */
  private async isForeign(socket: string, number: number): Promise<boolean> {
    const found = await lstat(socket).catch(() => null);
    const claim = await lstat(this.file(number)).catch(() => null);
    if (found === null || claim === null) return false;
    return ![0, process.getuid?.(), claim.uid].includes(found.uid);
  }

  private async newSocketPath(): Promise<string> {
    const id = randomBytes(6).toString('hex');
    const inside = join(await realpath(this.folder), `${id}.sock`);
    if (Buffer.byteLength(inside) <= MAX_SOCKET_PATH_LENGTH) return inside;
    return join(tmpdir(), `${await this.prefix()}${id}.sock`);
  }

  private async prefix(): Promise<string> {
    const hash = createHash('sha256').update(await realpath(this.folder));
    return `postern-${hash.digest('hex').slice(0, 16)}-`;
  }
}

function ourselves(): LockHolder {
  return { pid: process.pid, startedAt: new Date(Date.now() - process.uptime() * 1000).toISOString() };
}

function listen(path: string, published: () => unknown): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.unref();
      socket.on('error', () => socket.destroy());
      socket.end(`${JSON.stringify({ ...ourselves(), published: published() } satisfies LockHolder)}\n`);
    });
    server.once('error', reject);
    // `exclusive`: in a cluster worker the primary would listen in our place and outlive us.
    // Open to all: a user who may enter the folder must be able to tell that root's old lock is dead.
    server.listen({ path, exclusive: true, readableAll: true, writableAll: true }, () => resolve(server));
    server.unref();
  });
}

/** Null when nobody listens any more. */
function ask(claim: Claim): Promise<LockHolder | null> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(claim.socket);
    const finish = (holder: LockHolder | null) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(holder);
    };
    const believed = { pid: claim.pid, startedAt: claim.startedAt };
    const timer = setTimeout(() => finish(believed), RESPONSE_TIMEOUT.ms);
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!text.includes('\n')) return;
      try {
        finish(JSON.parse(text) as LockHolder);
      } catch {
        finish(believed);
      }
    });
    socket.on('end', () => finish(believed));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // Everything else (a full backlog, no permission) comes from a socket that somebody still holds.
      const dead = ['ECONNREFUSED', 'ENOENT', 'ENOTSOCK', 'ENOTDIR'].includes(error.code ?? '');
      finish(dead ? null : believed);
    });
  });
}

function unless(code: string): (error: unknown) => undefined {
  return (error) => {
    if ((error as NodeJS.ErrnoException).code !== code) throw error;
    return undefined;
  };
}
