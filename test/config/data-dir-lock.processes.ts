import { once } from 'node:events';
import { chmod, chown, cp, mkdir, readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DataDirError, openDataDir } from '../../src/platform/data-dir.js';
import { itNeeding } from '../support/needing.js';
import { setPatience } from '../support/patience.js';
import { FULL } from '../support/scale.js';
import { Child, compileSources, isRoot, ordinaryUserCanRunNode } from './processes.js';
import { removeFolder, temporaryFolder } from './temporary-folder.js';

setPatience(1, 'the holder of a folder lock');

let compiled: string;
let base: string;
const children: Child[] = [];

beforeAll(async () => {
  compiled = await compileSources();
});
afterAll(() => removeFolder(compiled));
beforeEach(async () => {
  base = await temporaryFolder();
});
afterEach(async () => {
  for (const child of children.splice(0)) await child.kill();
  await removeFolder(base);
});

/** Says `held` and stays, or says why not and ends. */
function holder(path: string, after = 0): Child {
  const child = new Child(
    compiled,
    `import { openDataDir } from './platform/data-dir.js';
     const dir = await openDataDir(${JSON.stringify(path)});
     await new Promise((go) => setTimeout(go, ${after} - Date.now()));
     await dir.hold().then(
       () => { console.log('held'); setInterval(() => {}, 1000); },
       (error) => console.log('rejected', error.message));`,
  );
  children.push(child);
  return child;
}

it('cannot be taken by a second instance, which learns the pid, and is free after release', async () => {
  const [one, two] = [await openDataDir(base), await openDataDir(base)];
  expect(await two.holder()).toBeNull();
  await one.hold();
  await one.hold();
  expect(await two.holder()).toEqual({ pid: process.pid });
  await expect(two.hold()).rejects.toThrow(DataDirError);
  one.release();
  expect(await two.holder()).toBeNull();
  await two.hold();
  two.release();
  two.release();
});

it('names the other process and the folder', async () => {
  const child = holder(base);
  await child.line('held');
  const dir = await openDataDir(base);
  expect(await dir.holder()).toEqual({ pid: child.pid });
  await expect(dir.hold()).rejects.toThrow(
    `another Postern (pid ${child.pid}) is using ${base}; stop it or set DATA_DIR`,
  );
});

it('is free when its holder was killed, and leaves no litter', async () => {
  for (let round = 0; round < 3; round += 1) {
    const child = holder(base);
    await child.line('held');
    await child.kill();
  }
  const dir = await openDataDir(base);
  expect(await dir.holder()).toBeNull();
  await dir.hold();
  const names = await readdir(join(base, 'lock'));
  const [sockets, claims] = [/\.sock$/, /^claim-/].map((name) => names.filter((one) => name.test(one)));
  expect([names.length, sockets!.length, claims]).toEqual([2, 1, ['claim-4']]);
  dir.release();
  expect(await readdir(join(base, 'lock'))).toEqual(['claim-4']);
});

it('believes the claim of a holder that is too busy to answer', async () => {
  const child = holder(base);
  await child.line('held');
  process.kill(child.pid, 'SIGSTOP');
  expect(await (await openDataDir(base)).holder()).toEqual({ pid: child.pid });
});

it('does not keep the process alive', async () => {
  const code = `import { openDataDir } from './platform/data-dir.js';
    const dir = await openDataDir(${JSON.stringify(base)});
    await dir.hold(); await dir.holder();`;
  expect(await new Child(compiled, code).ended).toBe(0);
});

it('works below a path too long for a socket', async () => {
  const path = join(base, 'x'.repeat(120));
  await mkdir(path);
  const child = holder(path);
  await child.line('held');
  const dir = await openDataDir(path);
  expect(await dir.holder()).toEqual({ pid: child.pid });
  const sockets = (await readdir(tmpdir())).filter((name) => /^postern-[0-9a-f]{16}-.*\.sock$/.test(name));
  expect(sockets.length).toBeGreaterThan(0);

  // A copy of the folder is another folder.
  const copy = join(base, 'y'.repeat(120));
  await cp(path, copy, { recursive: true });
  expect(await (await openDataDir(copy)).holder()).toBeNull();

  await child.kill();
  await dir.hold();
  dir.release();
});

itNeeding(
  process.getuid!() === 0 ? null : 'only root can give files to other users',
  'below such a path, cannot be held by a user who listens at the socket of a holder that is gone',
  async () => {
    const path = join(base, 'x'.repeat(122));
    await mkdir(path);
    const dir = await openDataDir(path);
    await dir.hold();
    dir.release();
    const claim = join(path, 'lock/claim-1');
    const { socket } = JSON.parse(await readFile(claim, 'utf8')) as { socket: string };
    expect(dirname(socket)).toBe(tmpdir());
    const silent = createServer().listen(socket);
    await once(silent, 'listening');
    try {
      await chown(socket, 12_345, 12_345);
      expect(await dir.holder()).toBeNull();
      // The user who has made the claim may hold it.
      await chown(claim, 12_345, 12_345);
      expect(await dir.holder()).toEqual({ pid: process.pid });
      await chown(claim, 0, 0);
      await dir.hold();
      dir.release();
    } finally {
      silent.close();
    }
  },
);

it('goes to exactly one of many processes, round after round of killed holders', async () => {
  for (let round = 0; round < (FULL ? 4 : 2); round += 1) {
    const starters = Array.from({ length: FULL ? 12 : 8 }, () => holder(base, Date.now() + 1_200));
    const outcomes = await Promise.all(
      starters.map((child) => Promise.race([child.line('held').then(() => 'held'), child.line('rejected')])),
    );
    const winner = starters[outcomes.indexOf('held')];
    expect(outcomes.filter((outcome) => outcome === 'held')).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome !== 'held') expect(outcome).toContain(`another Postern (pid ${winner?.pid}) is using`);
    }
    await winner?.kill();
  }
});

it('goes to one at a time where many take and release it quickly', async () => {
  const code = `import { FolderLock } from './platform/folder-lock.js';
    import { rmSync, writeFileSync } from 'node:fs';
    const alone = ${JSON.stringify(join(base, 'alone'))};
    for (let taken = 0; taken < 25;) {
      const lock = new FolderLock(${JSON.stringify(join(base, 'lock'))});
      if (await lock.take()) continue;
      writeFileSync(alone, '', { flag: 'wx' });
      await new Promise((go) => setTimeout(go, Math.random() * 3));
      rmSync(alone);
      lock.release();
      taken += 1;
    }
    console.log('done');`;
  const workers = Array.from({ length: FULL ? 6 : 4 }, () => new Child(compiled, code));
  children.push(...workers);
  await Promise.all(workers.map((child) => child.line('done')));
});

it('tells what the holder has published, unless every user of the machine could read it', async () => {
  setPatience(20, 'the holder of a folder lock');
  for (const [name, told] of [
    ['short', { url: 'x' }],
    ['x'.repeat(121), undefined],
  ] as const) {
    const path = join(base, name);
    await mkdir(path, { mode: 0o700 });
    const [holding, asking] = [await openDataDir(path), await openDataDir(path)];
    await holding.hold();
    expect((await asking.holder())!.published).toBeUndefined();
    holding.publish({ url: 'x' });
    expect((await asking.holder())!.published).toEqual(told);
    holding.publish(undefined);
    expect((await asking.holder())!.published).toBeUndefined();
    holding.release();
  }
});

(!isRoot || ordinaryUserCanRunNode ? it : it.skip)('rejects a folder it may not write to', async () => {
  const path = join(base, 'data');
  await mkdir(path);
  await chmod(path, 0o555);
  if (!isRoot) {
    await expect(openDataDir(path)).rejects.toThrow(/data is not writable for this user; change its owner/);
    return;
  }
  await chmod(base, 0o755);
  const code = `import { openDataDir } from './platform/data-dir.js';
    await openDataDir(${JSON.stringify(path)}).catch((error) => console.log('rejected', error.name, error.message));`;
  const child = new Child(compiled, code, { uid: 65534, gid: 65534 });
  expect(await child.line('rejected ')).toMatch(/^DataDirError .*data is not writable for this user/);
});
