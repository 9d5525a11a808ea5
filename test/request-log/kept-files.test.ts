import fs from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Settings } from '../../src/config/settings.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import type { JournalFile } from '../../src/request-log/journal/journal-file.js';
import type { JournalRecord } from '../../src/request-log/journal/record-codec.js';
import { readDeadRows } from '../../src/request-log/journal/recovery.js';
import { allFiles, keptFiles, keptFolder, logFiles } from '../../src/request-log/journal/run-directories.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { recordsOf } from './journal-calls.js';

/* The journal is the real one on a real folder; only single answers of the system are made worse. */

const MIB = 1024 * 1024;
const fault = (code: string) => Object.assign(new Error(`${code}: injected`), { code });

let dataDir: string;
let journal: Journal;

function open(keep: { keepMs?: number; keepBytes?: number } = {}): Journal {
  const { keepMs = 600_000, keepBytes = 1024 * MIB } = keep;
  const env = {
    dataDir,
    journalFsyncMs: 60_000,
    journalKeepMs: keepMs,
    journalKeepBytes: keepBytes,
    worker: 1,
  };
  const opened = new Journal(env as Settings);
  opened.onModuleInit();
  return opened;
}

beforeEach(async () => {
  Logger.overrideLogger(false);
  dataDir = await mkdtemp(join(tmpdir(), 'postern-kept-'));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await journal.close();
  await rm(dataDir, { recursive: true });
});

const append = (records: readonly JournalRecord[]): JournalFile[] =>
  records.map((record) => journal.append(record));

/** Beginnings of so many MiB, in few records. */
function fill(mib: number): JournalRecord[] {
  const agent = 'a'.repeat(65_000);
  return Array.from({ length: mib * 16 }, () => recordsOf('begun', 'completed', agent)[0]!);
}

async function kept(): Promise<{ seq: bigint; number: number }[]> {
  return (await keptFiles(journal.runDirectory)).map(({ seq, number }) => ({ seq, number }));
}

async function keptBytes(): Promise<number> {
  let sum = 0;
  for (const { path } of await keptFiles(journal.runDirectory)) sum += (await stat(path)).size;
  return sum;
}

never(
  'keeps a finished file under the highest seq that acknowledged a row in it, and counts it nowhere else',
  async () => {
    journal = open();
    const records = fill(9);
    const files = append(records);
    // Two batches, the later one first.
    journal.acknowledge(files.slice(20), 12n);
    journal.acknowledge(files.slice(0, 20), 11n);
    expect(await kept()).toEqual([{ seq: 12n, number: 1 }]);
    expect(await logFiles(journal.runDirectory)).toHaveLength(1);
    expect(journal.oldestMs).toBe(0);
    expect([journal.bytes, journal.kept.bytes]).toEqual([files.at(-1)!.size, await keptBytes()]);
    const ids: string[] = [];
    for await (const batch of readDeadRows(await allFiles(journal.runDirectory)))
      ids.push(...batch.map(({ id }) => id));
    expect(ids.sort()).toEqual(records.map(({ id }) => id).sort());
    // With the one that was appended to, at the end.
    await journal.close();
    expect(await kept()).toEqual([
      { seq: 12n, number: 1 },
      { seq: 12n, number: 2 },
    ]);
    expect(await logFiles(journal.runDirectory)).toEqual([]);
  },
);

it('deletes a file in which no row was acknowledged, and every file if none are kept', async () => {
  journal = open();
  journal.release(append(fill(9)));
  expect(await kept()).toEqual([]);
  await journal.close();
  expect(await readdir(journal.root)).toEqual([]);
  journal = open({ keepMs: 0 });
  journal.acknowledge(append(fill(9)), 1n);
  expect([await kept(), journal.kept.coveredMs]).toEqual([[], 0]);
});

it('deletes files after their time, those that were held for put-back after that', async () => {
  journal = open({ keepMs: 1 });
  journal.acknowledge(append(fill(9)), 1n);
  journal.holdAbove(0n);
  journal.acknowledge(append(fill(9)), 2n);
  await eventually(async () => (await kept()).every(({ seq }) => seq !== 2n));
  expect(await kept()).toEqual([{ seq: 1n, number: 1 }]);
  journal.releaseHeld(3n);
  await eventually(async () => (await kept()).length === 0);
  expect([journal.kept.bytes, journal.kept.goneSeq]).toEqual([0, 3n]);
  expect(journal.degraded).toBeNull();
});

it('never keeps more bytes than allowed, on the disk and in memory, and the newest of them', async () => {
  journal = open({ keepBytes: 20 * MIB });
  for (let seq = 1n; seq <= 8n; seq++) {
    journal.acknowledge(append(fill(9)), seq);
    expect(await keptBytes()).toBeLessThanOrEqual(20 * MIB);
    expect(journal.kept.bytes).toBe(await keptBytes());
  }
  const left = await kept();
  expect(left.map(({ seq }) => seq)).toEqual([7n, 8n]);
  // What the batch before them acknowledged is gone.
  expect(journal.kept.goneSeq).toBe(6n);
  // What is held for put-back is not deleted for newer ones.
  const held = journal.holdAbove(6n);
  for (let seq = 9n; seq <= 12n; seq++) journal.acknowledge(append(fill(9)), seq);
  for (const path of held) expect(fs.existsSync(path)).toBe(true);
  expect(await keptBytes()).toBeLessThanOrEqual(20 * MIB);
  journal.releaseHeld(13n);
  journal.acknowledge(append(fill(9)), 14n);
  expect(await keptBytes()).toBeLessThanOrEqual(20 * MIB);
  expect((await kept()).map(({ seq }) => seq)).toContain(14n);
});

never(
  'leaves a file that is held for put-back in place, and does not count it as one that calls need',
  async () => {
    journal = open();
    const files = append(recordsOf('begun'));
    const [path] = journal.holdAbove(0n);
    expect(journal.oldestMs).toBeGreaterThan(0);
    journal.acknowledge(files, 1n);
    expect([journal.oldestMs, fs.existsSync(path!), await kept()]).toEqual([0, true, []]);
    journal.releaseHeld(2n);
    expect([fs.existsSync(path!), await kept()]).toEqual([false, [{ seq: 2n, number: 1 }]]);
  },
);

never('holds every file for put-back, however little space is left for kept ones', async () => {
  journal = open({ keepBytes: 20 * MIB });
  journal.acknowledge(append(fill(17)), 1n);
  journal.acknowledge(append(fill(5)), 2n);
  // The one that is appended to would not fit beside them.
  expect(await kept()).toHaveLength(2);
  const paths = journal.holdAbove(0n);
  expect(paths).toHaveLength(3);
  for (const path of paths) expect(fs.existsSync(path)).toBe(true);
  journal.releaseHeld(3n);
});

describe('a full disk', () => {
  it('gets the space of kept files back before a call is rejected for it', async () => {
    journal = open();
    for (let seq = 1n; seq <= 3n; seq++) journal.acknowledge(append(fill(9)), seq);
    const before = (await kept()).length;
    expect(before).toBeGreaterThanOrEqual(3);
    const real = fs.statfsSync;
    let left = before;
    // Two files are enough.
    jest.spyOn(fs, 'statfsSync').mockImplementation(((path: string) => {
      left = fs.readdirSync(keptFolder(journal.runDirectory)).length;
      return { ...real(path), bavail: left > before - 2 ? 1 : 10 ** 9 };
    }) as typeof real);
    await eventually(() => left === before - 2);
    expect([journal.accepting, journal.degraded]).toEqual([true, null]);
    expect((await kept()).map(({ seq }) => seq)).not.toContain(1n);
  });

  it('is noticed by a write where the system does not count it', async () => {
    journal = open();
    journal.acknowledge(append(fill(9)), 1n);
    const [path] = (await keptFiles(journal.runDirectory)).map((file) => file.path);
    const real = fs.writeSync;
    jest.spyOn(fs, 'writeSync').mockImplementation(((fd: number, bytes: Buffer, offset = 0) => {
      if (fs.existsSync(path!)) throw fault('ENOSPC');
      return real(fd, bytes, offset);
    }) as unknown as typeof fs.writeSync);
    const [begin] = recordsOf('begun');
    journal.append(begin!);
    expect([journal.accepting, journal.degraded, fs.existsSync(path!)]).toEqual([true, null, false]);
  });
});

it('syncs what was kept before it was on the disk, and goes on if that fails', async () => {
  journal = open();
  const real = fs.fdatasync;
  const synced: number[] = [];
  let failing = false;
  jest.spyOn(fs, 'fdatasync').mockImplementation((fd: number, done: fs.NoParamCallback) => {
    synced.push(fs.fstatSync(fd).ino);
    if (failing) process.nextTick(done, fault('EIO'));
    else real(fd, done);
  });
  journal.acknowledge(append(fill(9)), 1n);
  await journal.sync();
  const [first] = await keptFiles(journal.runDirectory);
  expect(synced).toContain(fs.statSync(first!.path).ino);

  // The one in use is synced now, so that only the kept one fails.
  const files = append(fill(9));
  failing = true;
  journal.acknowledge(files, 2n);
  const descriptors = () => fs.readdirSync('/dev/fd').length;
  const before = descriptors();
  const settled = journal.sync();
  failing = false;
  await settled;
  // Others of this process come and go.
  await eventually(() => descriptors() <= before);
  expect((await kept()).map(({ seq }) => seq)).toEqual([1n, 2n]);
});

it('costs a call no system call: a file is renamed where it was unlinked', () => {
  journal = open();
  const calls = new Map<string, number>();
  for (const name of [
    'writeSync',
    'openSync',
    'renameSync',
    'unlinkSync',
    'mkdirSync',
    'existsSync',
    'statSync',
  ] as const) {
    const real = fs[name] as (...args: unknown[]) => unknown;
    jest.spyOn(fs, name).mockImplementation(((...args: unknown[]) => {
      calls.set(name, (calls.get(name) ?? 0) + 1);
      return real(...args);
    }) as never);
  }
  const records = recordsOf('read');
  for (let call = 0; call < 500; call++) journal.acknowledge(append(records), 1n);
  expect([...calls]).toEqual([['writeSync', 1_500]]);
  calls.clear();
  journal.acknowledge(append(fill(9)), 2n);
  expect(calls.get('unlinkSync')).toBeUndefined();
  expect(calls.get('renameSync')).toBe(1);
  expect(calls.get('openSync')).toBe(1);
});
