import { chmod, chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRoot, ordinaryUserCanRunNode } from '../config/processes.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { fingerprint } from '../support/files-below.js';
import type { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';

/** `nobody` on Linux and macOS alike; any number without rights would do. */
const ORDINARY = { uid: 65_534, gid: 65_534 };

let database: TestDatabase;
let workplace: Workplace;

beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  workplace = await Workplace.make();
});
afterEach(() => workplace.remove());

const settings = () => ({ DATABASE_URL: database.url });

async function rejection({ process }: GatewayProcess): Promise<string> {
  expect(await process.ended).toEqual({ code: 1, signal: null });
  return process.stderr;
}

/** What is in the folder, without what the running instance adds when it reads the audit log. */
async function lasting(): Promise<object> {
  const files = Object.entries(await fingerprint(workplace.dataDir));
  return Object.fromEntries(files.filter(([path]) => !/^kept(\/|$)/.test(path)));
}

it('rejects the folder of a running instance, names its pid and leaves it alone', async () => {
  const first = workplace.gateway(settings());
  const url = await first.ready();
  const before = await lasting();
  expect(await rejection(workplace.gateway(settings()))).toBe(
    `postern: another Postern (pid ${first.process.pid}) is using ${workplace.dataDir}; ` +
      'stop it or set DATA_DIR to another folder\n',
  );
  expect(await lasting()).toEqual(before);
  expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  expect(await first.stop()).toEqual({ code: 0, signal: null });
});

it("rejects a folder with somebody else's files", async () => {
  await mkdir(join(workplace.dataDir, 'photos'), { recursive: true });
  await writeFile(join(workplace.dataDir, 'photos', 'cat.jpg'), 'meow');
  const before = await fingerprint(workplace.folder);
  expect(await rejection(workplace.gateway())).toBe(
    `postern: ${workplace.dataDir} holds files that are not Postern's; set DATA_DIR to an empty or new folder\n`,
  );
  expect(await fingerprint(workplace.folder)).toEqual(before);
});

(isRoot && !ordinaryUserCanRunNode ? it.skip : it)('rejects a folder it may not write to', async () => {
  await mkdir(workplace.dataDir);
  if (isRoot) await chown(workplace.dataDir, 0, 0);
  await chmod(workplace.dataDir, 0o555);
  expect(await rejection(workplace.gateway({}, isRoot ? ORDINARY : undefined))).toBe(
    `postern: ${workplace.dataDir} is not writable for this user; ` +
      'change its owner or set DATA_DIR to another folder\n',
  );
  expect(await fingerprint(workplace.dataDir)).toEqual({});
});
