import { appendFile, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeptEntries, readKept } from '../../src/lost-changes/kept-entries.js';

let root: string;
let folder: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'postern-kept-'));
  folder = join(root, 'run');
});
afterEach(() => rm(root, { recursive: true }));

const entry = (id: string, name = 'ü\\n"') => ({ id, entry: JSON.stringify({ id, subject_name: name }) });
const MINUTE = 60_000;

it('keeps entries as they are, for nobody else to read, and none before the first', async () => {
  const kept = new KeptEntries(folder);
  expect(await kept.read()).toEqual([]);
  expect(await readdir(root)).toEqual([]);
  await kept.append([entry('a'), entry('b')], 0);
  await kept.append([entry('c')], MINUTE);
  expect(await kept.read()).toEqual([entry('a'), entry('b'), entry('c')]);
  expect(await readKept(folder)).toEqual(await kept.read());
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  for (const name of await readdir(folder)) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
});

it('removes a file once its last entry is old', async () => {
  const kept = new KeptEntries(folder);
  for (let minute = 0; minute < 5; minute++) await kept.append([entry(String(minute))], minute * MINUTE);
  await kept.removeBefore(3 * MINUTE);
  expect(await readdir(folder)).toHaveLength(2);
  expect(await kept.read()).toEqual([entry('3'), entry('4')]);
  await kept.removeBefore(9 * MINUTE);
  expect(await kept.read()).toEqual([]);
});

it('removes the oldest files once all are too large, and goes on if somebody has removed them', async () => {
  const large = (id: string) => entry(id, 'x'.repeat(1_000));
  const kept = new KeptEntries(folder, 2_500);
  for (let minute = 0; minute < 4; minute++) {
    await kept.append([large(String(minute))], minute * MINUTE);
    expect(await kept.removeBefore(0)).toBe(minute > 1);
  }
  expect(await kept.read()).toEqual([large('2'), large('3')]);
  await rm(folder, { recursive: true });
  expect(await kept.read()).toEqual([]);
  await kept.append([entry('new')], 4 * MINUTE);
  await kept.removeBefore(4 * MINUTE);
  expect(await kept.read()).toEqual([entry('new')]);
  await kept.clear();
  expect(await readdir(root)).toEqual([]);
});

it('reads what is whole of a file that was cut at any byte, or damaged', async () => {
  const line = entry('b').entry;
  for (let length = 0; length < line.length; length += 7) {
    const kept = new KeptEntries(folder);
    await kept.append([entry('a')], 0);
    await appendFile(join(folder, '00000001.log'), `v1 00000000 ${line.slice(0, length)}`);
    expect(await readKept(folder)).toEqual([entry('a')]);
    await rm(folder, { recursive: true });
  }
});
