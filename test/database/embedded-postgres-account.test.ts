import { chmod, chown, cp, lstat, mkdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startEmbeddedPostgres } from '../../src/database/embedded-postgres.js';
import { postgresPackage, usableBinaries } from '../../src/database/postgres-binaries.js';
import {
  Child,
  compileSources,
  isRoot,
  ordinaryUserCanRunNode,
  removeFolder,
  temporaryFolder,
} from '../config/processes.js';

/** `nobody`: the one ordinary user that every machine lists. */
const ORDINARY = { uid: 65534, gid: 65534 };
const asRoot = isRoot ? it : it.skip;
const asRootAndOrdinary = ordinaryUserCanRunNode ? asRoot : it.skip;

let base: string;
let reported: string[];
const report = (line: string) => reported.push(line);

beforeEach(async () => {
  base = await temporaryFolder();
  reported = [];
});
afterEach(() => removeFolder(base));

describe('the account of the server', () => {
  asRoot('is nobody for root, who keeps the password and lets it pass through, not look around', async () => {
    const server = await startEmbeddedPostgres({ dataDir: base, fsync: false });
    try {
      expect((await stat(join(server.folder, 'cluster'))).uid).toBe(ORDINARY.uid);
      expect(await stat(join(server.folder, 'password'))).toMatchObject({ uid: 0 });
      for (const folder of [base, server.folder]) expect((await stat(folder)).mode & 0o777).toBe(0o710);
    } finally {
      await server.stop();
    }
  });

  asRoot('has its cluster under /var/lib/postern where it cannot enter the DATA_DIR', async () => {
    const dataDir = join(base, 'private', 'data');
    await mkdir(dataDir, { recursive: true });
    await chmod(join(base, 'private'), 0o700);
    const hadSystemFolder = existsSync('/var/lib/postern');
    const server = await startEmbeddedPostgres({ dataDir, fsync: false, report });
    try {
      expect(server.folder).toMatch(/^\/var\/lib\/postern\/[0-9a-f]{16}$/);
      expect(reported[0]).toContain(`cannot enter ${dataDir}: the database lives in ${server.folder}`);
      await server.stop();
      // Where the cluster is decides, once there is one.
      await chmod(join(base, 'private'), 0o755);
      await chmod(base, 0o755);
      const again = await startEmbeddedPostgres({ dataDir, fsync: false });
      expect(again.folder).toBe(server.folder);
    } finally {
      await server.stop();
      await removeFolder(server.folder);
      if (!hadSystemFolder) await rmdir('/var/lib/postern');
    }
  });

  asRootAndOrdinary('is the owner of the DATA_DIR, who can start without root next time', async () => {
    const dataDir = join(base, 'data');
    await mkdir(dataDir, { mode: 0o700 });
    await chown(dataDir, ORDINARY.uid, ORDINARY.gid);
    await chmod(base, 0o755);
    const server = await startEmbeddedPostgres({ dataDir, fsync: false });
    await server.stop();
    for (const name of ['cluster', 'password', 'port', 'server.log', 'lock', '.']) {
      expect([name, (await stat(join(server.folder, name))).uid]).toEqual([name, ORDINARY.uid]);
    }
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
    expect(await startAsOrdinary(dataDir)).toMatchObject({ url: server.url, attached: false });
  });

  asRootAndOrdinary('is the ordinary user who starts, in a private folder of its own', async () => {
    const dataDir = join(base, 'home', 'data');
    await mkdir(join(base, 'home'), { mode: 0o700 });
    await chown(join(base, 'home'), ORDINARY.uid, ORDINARY.gid);
    await chmod(base, 0o755);
    expect(await startAsOrdinary(dataDir)).toMatchObject({
      folder: join(dataDir, 'postgres'),
      attached: false,
    });
    expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
  });

  asRootAndOrdinary('must be the one that owns the cluster', async () => {
    const dataDir = join(base, 'data');
    await mkdir(join(dataDir, 'postgres', 'cluster'), { recursive: true });
    for (const folder of [base, dataDir, join(dataDir, 'postgres')]) await chmod(folder, 0o755);
    await expect(startAsOrdinary(dataDir)).rejects.toThrow(
      'belongs to user 0, this process runs as 65534; start as',
    );
  });
});

async function startAsOrdinary(dataDir: string): Promise<unknown> {
  const compiled = await compileSources();
  try {
    const code = `import { startEmbeddedPostgres } from './database/embedded-postgres.js';
      const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)}, fsync: false });
      await server.stop();
      console.log('server', JSON.stringify(server));`;
    return JSON.parse(await new Child(compiled, code, ORDINARY).line('server '));
  } finally {
    await removeFolder(compiled);
  }
}

describe('the binaries', () => {
  const version = async (native: string) =>
    (
      await promisify(execFile)(join(native, 'bin', 'postgres'), ['--version'], {
        ...(isRoot ? ORDINARY : {}),
        cwd: '/',
      })
    ).stdout;

  /** A package as npm unpacks it when install scripts are blocked: no library links. */
  async function unlinked(folder: string): Promise<{ folder: string; version: string }> {
    const installed = await postgresPackage();
    await cp(installed.folder, folder, {
      recursive: true,
      filter: async (file) => !(await lstat(file)).isSymbolicLink(),
    });
    return { ...installed, folder };
  }

  it('get their library links where install scripts were blocked', async () => {
    await chmod(base, 0o755);
    const from = await unlinked(join(base, 'package'));
    const home = { folder: base, account: isRoot ? ORDINARY : null };
    expect(await usableBinaries(from, home, report)).toBe(join(from.folder, 'native'));
    expect(await version(join(from.folder, 'native'))).toContain('(PostgreSQL) 18.');
    expect(reported).toEqual([]);
  });

  asRoot('are copied where node_modules belongs to another user', async () => {
    await chmod(base, 0o755);
    const from = await unlinked(join(base, 'package'));
    await chown(join(from.folder, 'native', 'lib'), 12345, 12345);
    await expectCopy(from);
  });

  asRoot('are copied out of a clone that the account cannot enter, once', async () => {
    await chmod(base, 0o755);
    await mkdir(join(base, 'private'), { mode: 0o700 });
    await expectCopy(await unlinked(join(base, 'private', 'package')));
  });

  asRoot('are copied where they were installed with a private umask', async () => {
    await chmod(base, 0o755);
    const from = await unlinked(join(base, 'package'));
    await chmod(join(from.folder, 'native', 'share', 'postgresql', 'postgres.bki'), 0o600);
    await expectCopy(from);
  });

  async function expectCopy(from: { folder: string; version: string }): Promise<void> {
    const home = { folder: join(base, 'home'), account: ORDINARY };
    await mkdir(home.folder, { mode: 0o755 });
    const copy = join(home.folder, `binaries-${from.version}`);
    expect(await usableBinaries(from, home, report)).toBe(copy);
    expect(await usableBinaries(from, home, report)).toBe(copy);
    expect(reported).toEqual([`copying the Postgres binaries to ${copy}`]);
    expect(await version(copy)).toContain('(PostgreSQL) 18.');
    expect(await readFile(join(copy, 'share', 'postgresql', 'postgres.bki'), 'utf8')).toContain('PostgreSQL');
    await rm(copy, { recursive: true });
  }
});
