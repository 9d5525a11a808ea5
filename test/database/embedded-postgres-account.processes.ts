import { chmod, chown, cp, lstat, mkdir, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { execFile } from 'node:child_process';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { startEmbeddedPostgres } from '../../src/embedded-postgres/embedded-postgres.js';
import { postgresPackage, usableBinaries } from '../../src/embedded-postgres/binaries.js';
import { Child, compileSources, isRoot, ordinaryUserCanRunNode } from '../config/processes.js';
import { removeFolder, temporaryFolder } from '../config/temporary-folder.js';

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

  describe('where it cannot enter the DATA_DIR', () => {
    let hadSystemFolder: boolean;
    let dataDir: string;
    const homes = new Set<string>();
    const start = async () => {
      const server = await startEmbeddedPostgres({ dataDir, fsync: false, report });
      homes.add(server.folder);
      return server;
    };

    beforeEach(async () => {
      hadSystemFolder = existsSync('/var/lib/postern');
      dataDir = join(base, 'private', 'data');
      await mkdir(dataDir, { recursive: true });
      await chmod(join(base, 'private'), 0o700);
    });
    afterEach(async () => {
      for (const home of homes) {
        const parent = dirname(home);
        const names = (await readdir(parent).catch(() => [])).filter((name) =>
          name.startsWith(basename(home)),
        );
        for (const name of names) await removeFolder(join(parent, name));
      }
      homes.clear();
      if (!hadSystemFolder) await rmdir('/var/lib/postern').catch(() => undefined);
    });

    asRoot(
      'has its cluster under /var/lib/postern, found again when the DATA_DIR moves or opens up',
      async () => {
        const server = await start();
        await server.stop();
        expect(server.folder).toMatch(/^\/var\/lib\/postern\/[0-9a-f]{16}$/);
        expect(reported[0]).toContain(`cannot enter ${dataDir}: the database is stored in ${server.folder}`);
        await rename(dataDir, `${dataDir}-moved`);
        dataDir = `${dataDir}-moved`;
        for (const folder of [base, join(base, 'private')]) await chmod(folder, 0o755);
        const again = await start();
        await again.stop();
        expect(again.url).toBe(server.url);
      },
    );

    asRoot('says so when that folder is gone, and starts with a new one if that is requested', async () => {
      const server = await start();
      await server.stop();
      await removeFolder(server.folder);
      await expect(start()).rejects.toThrow(
        `the database of ${dataDir} was in ${server.folder}, which is gone; put it`,
      );
      await rm(join(dataDir, 'postgres', 'location'));
      await (await start()).stop();
    });

    asRoot('sets the cluster of a removed DATA_DIR aside, also one that still runs', async () => {
      const server = await start();
      await removeFolder(dataDir);
      const second = await start();
      expect(second).toMatchObject({ folder: server.folder, attached: false });
      expect(second.url).not.toBe(server.url);
      await second.stop();
      const aside =
        reported
          .find((line) => line.includes('is set aside in'))
          ?.split(' ')
          .at(-1) ?? '';
      expect(existsSync(join(aside, 'cluster', 'PG_VERSION'))).toBe(true);
      expect(existsSync(join(aside, 'cluster', 'postmaster.pid'))).toBe(false);
    });
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
    const code = `import { startEmbeddedPostgres } from './embedded-postgres/embedded-postgres.js';
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
