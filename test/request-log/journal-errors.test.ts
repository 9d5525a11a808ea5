import fs from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Logger } from '@nestjs/common';
import type { Settings } from '../../src/config/settings.js';
import type { JournalFile } from '../../src/request-log/journal/journal-file.js';
import { encodeRecord, type JournalRecord } from '../../src/request-log/journal/record-codec.js';
import { readDeadRows } from '../../src/request-log/journal/recovery.js';
import { logFiles } from '../../src/request-log/journal/run-directories.js';
import { Journal } from '../../src/request-log/journal/journal.js';
import type { JournalSync } from '../../src/request-log/journal/journal-sync.js';
import { deferred } from '../support/deferred.js';
import { eventually, timePasses } from '../support/eventually.js';
import { never } from '../support/never.js';
import { linesOf, recordsOf, rowsOf } from './journal-calls.js';

/*
 * The journal is the real one on a real folder; only the system's answers to single calls are made worse, as a full,
 * slow or broken disk makes them.
 */

let dataDir: string;
let journal: Journal;

const fault = (code: string) => Object.assign(new Error(`${code}: injected`), { code });

function open(fsyncMs = 60_000): Journal {
  const opened = new Journal({ dataDir, journalFsyncMs: fsyncMs, worker: 1 } as Settings);
  opened.onModuleInit();
  return opened;
}

beforeEach(async () => {
  Logger.overrideLogger(false);
  dataDir = await mkdtemp(join(tmpdir(), 'postern-journal-'));
  journal = open();
});
afterEach(async () => {
  jest.restoreAllMocks();
  await journal.close();
  await rm(dataDir, { recursive: true });
});

/** What the next start would find. */
async function recovered() {
  const rows = [];
  for await (const batch of readDeadRows(await logFiles(journal.runDirectory))) rows.push(...batch);
  return new Map(rows.map((row) => [row.id, row]));
}

function append(records: readonly JournalRecord[]): JournalFile[] {
  return records.map((record) => journal.append(record));
}

/** Lets writes of journal lines through only as this says; other writes are left alone. */
function onWrite(
  worse: (real: typeof fs.writeSync, fd: number, bytes: Buffer, offset: number) => number,
): void {
  const real = fs.writeSync;
  jest
    .spyOn(fs, 'writeSync')
    .mockImplementation(((fd: number, bytes: Buffer, offset = 0) =>
      worse(real, fd, bytes, offset)) as unknown as typeof fs.writeSync);
}

it('makes the names of its directories durable, the first one in DATA_DIR too', async () => {
  await journal.close();
  await rm(journal.root, { recursive: true });
  const steps: string[] = [];
  const { mkdirSync, fsyncSync } = fs;
  jest.spyOn(fs, 'mkdirSync').mockImplementation(((path: string, options: fs.MakeDirectoryOptions) => {
    steps.push(`mkdir ${path}`);
    return mkdirSync(path, options);
  }) as typeof mkdirSync);
  jest.spyOn(fs, 'fsyncSync').mockImplementation((fd: number) => {
    steps.push(`fsync ${fs.fstatSync(fd).ino}`);
    fsyncSync(fd);
  });
  journal = open();
  const { root, runDirectory } = journal;
  for (const [made, inside] of [
    [root, dataDir],
    [runDirectory, root],
  ]) {
    const at = steps.indexOf(`mkdir ${made}`);
    expect(at).toBeGreaterThanOrEqual(0);
    expect(steps.lastIndexOf(`fsync ${fs.statSync(inside!).ino}`)).toBeGreaterThan(at);
  }
});

never('puts a line together from short writes', async () => {
  onWrite((real, fd, bytes, offset) => real(fd, bytes, offset, Math.min(7, bytes.length - offset)));
  const call = recordsOf('read');
  append(call);
  expect(await recovered()).toEqual(rowsOf(call));
});

never('goes on in a new file when the old one fails, wherever the line was torn', async () => {
  const calls = [];
  for (let at = 0; at < 600; at += 13) {
    let failing = true;
    onWrite((real, fd, bytes, offset) => {
      if (!failing) return real(fd, bytes, offset);
      failing = false;
      real(fd, bytes, 0, Math.min(at, bytes.length));
      throw fault('EIO');
    });
    const call = recordsOf('read');
    append(call);
    calls.push(...call);
    jest.restoreAllMocks();
  }
  expect(journal.degraded).toBeNull();
  expect(await recovered()).toEqual(rowsOf(calls));
});

never('never makes a record of a beginning it rejected, however much of it was written', async () => {
  const before = recordsOf('read');
  append(before);
  const [rejected] = recordsOf('begun');
  // All but the newline gets through, then nothing does.
  onWrite((real, fd, bytes, offset) => {
    if (bytes.length > 2) real(fd, bytes, offset, bytes.length - 1);
    throw fault('ENOSPC');
  });
  expect(() => journal.append(rejected!)).toThrow('ENOSPC');
  expect(journal.accepting).toBe(false);
  expect(journal.degraded).not.toBeNull();
  jest.restoreAllMocks();
  const after = recordsOf('read');
  append(after);
  expect(await recovered()).toEqual(rowsOf([...before, ...after]));
});

it('gives the reserve for the end of a call in flight, not for a new one', async () => {
  const reserve = join(journal.root, 'reserve');
  const [begin, end] = recordsOf('ended');
  journal.append(begin!);
  onWrite((real, fd, bytes, offset) => {
    if (fs.existsSync(reserve)) throw fault('ENOSPC');
    return real(fd, bytes, offset);
  });
  expect(() => journal.append(recordsOf('begun')[0]!)).toThrow('ENOSPC');
  expect(fs.existsSync(reserve)).toBe(true);
  journal.append(end!);
  expect(await recovered()).toEqual(rowsOf([begin!, end!]));
});

it('takes no call below the floor of free space and takes them again above it', async () => {
  const real = fs.statfsSync;
  jest
    .spyOn(fs, 'statfsSync')
    .mockImplementation(((path: string) => ({ ...real(path), bavail: 1 })) as typeof real);
  await eventually(() => !journal.accepting);
  expect(journal.degraded).toContain('full');
  jest.restoreAllMocks();
  await eventually(() => journal.accepting && journal.degraded === null);
});

it.each([
  {
    how: 'has no statfs',
    look: () => {
      throw fault('ENOSYS');
    },
  },
  { how: 'counts no blocks', look: () => ({ blocks: 0, bavail: 0, bsize: 4_096 }) },
])('takes calls on a file system that $how, until a write fails', async ({ look }) => {
  await journal.close();
  const looks = jest.spyOn(fs, 'statfsSync').mockImplementation(look as unknown as typeof fs.statfsSync);
  const said = jest.spyOn(Logger.prototype, 'warn');
  journal = open();
  expect([journal.accepting, journal.degraded]).toEqual([true, null]);
  const call = recordsOf('read');
  append(call);
  await eventually(() => looks.mock.calls.length >= 2);
  expect(said).toHaveBeenCalledTimes(1);
  expect(said.mock.calls[0]![0]).toContain('does not report its free space');
  let isFull = true;
  onWrite((real, fd, bytes, offset) => {
    if (isFull) throw fault('ENOSPC');
    return real(fd, bytes, offset);
  });
  expect(() => append(recordsOf('begun'))).toThrow('ENOSPC');
  expect(journal.accepting).toBe(false);
  isFull = false;
  await eventually(() => journal.accepting && journal.degraded === null);
  expect(await recovered()).toEqual(rowsOf(call));
});

it('starts on a full disk and accepts calls once there is space', async () => {
  await journal.close();
  jest.spyOn(fs, 'mkdirSync').mockImplementation(() => {
    throw fault('ENOSPC');
  });
  journal = open();
  expect(journal.accepting).toBe(false);
  expect(() => journal.append(recordsOf('begun')[0]!)).toThrow();
  jest.restoreAllMocks();
  await eventually(() => journal.accepting);
  const call = recordsOf('read');
  append(call);
  expect(await recovered()).toEqual(rowsOf(call));
});

it('takes no call while nothing can be written, says so once, and takes them again by itself', async () => {
  const before = recordsOf('begun');
  append(before);
  const said = jest.spyOn(Logger.prototype, 'error');
  const looks = jest.spyOn(fs, 'statfsSync');
  const readOnly = (deed: string) =>
    Object.assign(new Error(`EROFS: read-only file system, ${deed}`), { code: 'EROFS' });
  onWrite(() => {
    throw readOnly('write');
  });
  jest.spyOn(fs, 'openSync').mockImplementation((path) => {
    throw readOnly(`open '${String(path)}'`);
  });
  expect(() => append(recordsOf('begun'))).toThrow('EROFS');
  expect(journal.accepting).toBe(false);
  // The disk still reports its free space.
  for (let look = 1; look <= 2; look++) {
    await eventually(() => looks.mock.calls.length >= look);
    expect([journal.accepting, journal.degraded]).toEqual([false, expect.stringContaining('EROFS')]);
    expect(() => append(recordsOf('begun'))).toThrow('EROFS');
  }
  expect(said).toHaveBeenCalledTimes(1);
  jest.restoreAllMocks();
  await eventually(() => journal.accepting && journal.degraded === null);
  const after = recordsOf('begun');
  append(after);
  let corrupt = 0;
  for await (const _ of readDeadRows(await logFiles(journal.runDirectory), (count) => (corrupt += count)));
  // The line that was torn; not the blank one that showed that the disk takes lines.
  expect(corrupt).toBe(1);
  expect(await recovered()).toEqual(rowsOf([...before, ...after]));
});

it('learns from the end of a call that nothing can be written', async () => {
  onWrite(() => {
    throw fault('EROFS');
  });
  expect(() => append([recordsOf('ended')[1]!])).toThrow('EROFS');
  await eventually(() => !journal.accepting);
  jest.restoreAllMocks();
  await eventually(() => journal.accepting && journal.degraded === null);
});

it('goes on in the old file while no new one can be made', () => {
  const files = new Set(append(fill(9)));
  expect(files.size).toBe(2);
  jest.spyOn(fs, 'openSync').mockImplementation(() => {
    throw fault('EMFILE');
  });
  for (const file of append(fill(9))) files.add(file);
  expect(files.size).toBe(2);
  jest.restoreAllMocks();
  for (const file of append(fill(9))) files.add(file);
  expect(files.size).toBeGreaterThan(2);
});

/** Beginnings of so many MiB. */
function fill(mib: number): JournalRecord[] {
  const agent = 'a'.repeat(1_024);
  return Array.from({ length: mib * 800 }, () => recordsOf('begun', 'completed', agent)[0]!);
}

it('leaves no file and no descriptor behind once all calls are in Postgres', async () => {
  const open = () => fs.readdirSync('/dev/fd').length;
  const before = open();
  for (let round = 0; round < 5; round++) journal.release(append(fill(9)));
  await eventually(() => open() <= before + 1);
  expect(await readdir(journal.runDirectory)).toHaveLength(1);
});

it('removes later what it could not remove at once', async () => {
  jest.spyOn(fs, 'unlinkSync').mockImplementation(() => {
    throw fault('EPERM');
  });
  journal.release(append(fill(9)));
  expect(await logFiles(journal.runDirectory)).toHaveLength(2);
  expect(journal.degraded).toContain('EPERM');
  // Lines are taken all the while, which is no reason to tell of it again each time.
  const said = jest.spyOn(Logger.prototype, 'error');
  const looks = jest.spyOn(fs, 'statfsSync');
  append(recordsOf('begun'));
  await eventually(() => looks.mock.calls.length >= 2);
  expect([said.mock.calls, journal.degraded]).toEqual([[], expect.stringContaining('EPERM')]);
  jest.restoreAllMocks();
  await eventually(async () => (await logFiles(journal.runDirectory)).length === 1);
});

describe('records of one tick of the event loop', () => {
  /** Journals them in one batch. @returns which were written and which failed, in the order of the reports */
  function appendAll(records: readonly JournalRecord[]) {
    const reported: [JournalRecord, 'written' | 'failed'][] = [];
    const files: JournalFile[] = [];
    journal.appendBatch(
      records.map((record) => ({
        json: encodeRecord(record.t, record),
        isStart: record.t === 'B',
        written: (file: JournalFile) => {
          reported.push([record, 'written']);
          files.push(file);
        },
        failed: () => reported.push([record, 'failed']),
      })),
    );
    return { reported, files };
  }

  it('are written at once, and keep their file until each is released', async () => {
    const writes = jest.spyOn(fs, 'writeSync');
    const records = [...recordsOf('read'), ...recordsOf('ended'), ...recordsOf('begun')];
    const { reported, files } = appendAll(records);
    expect(writes).toHaveBeenCalledTimes(1);
    expect(reported).toEqual(records.map((record) => [record, 'written']));
    expect(await recovered()).toEqual(rowsOf(records));
    journal.release(files);
    await journal.close();
    expect(await readdir(journal.root)).toEqual([]);
  });

  never(
    'get no reserve if they are beginnings, also when they are tried again on a disk that is full now',
    () => {
      const reserve = join(journal.root, 'reserve');
      const codes = ['EIO'];
      onWrite((real, fd, bytes, offset) => {
        if (fs.existsSync(reserve)) throw fault(codes.pop() ?? 'ENOSPC');
        return real(fd, bytes, offset);
      });
      const [begin] = recordsOf('begun');
      expect(appendAll([begin!]).reported).toEqual([[begin, 'failed']]);
      expect(fs.existsSync(reserve)).toBe(true);
    },
  );

  never(
    'stand as far as a filling disk took them: ends get the reserve, and no rejected beginning is found',
    async () => {
      const reserve = join(journal.root, 'reserve');
      const kinds = [recordsOf('ended'), recordsOf('begun'), recordsOf('ended'), recordsOf('begun')];
      const length = linesOf(kinds.map((call) => call.at(-1)!)).reduce((sum, line) => sum + line.length, 0);
      for (let at = 0; at <= length; at += 19) {
        const calls = kinds.map(({ length: count }) => recordsOf(count === 1 ? 'begun' : 'ended'));
        const begun = calls.filter((call) => call.length > 1).map(([begin]) => begin!);
        append(begun);
        await eventually(() => fs.existsSync(reserve));
        let left = at;
        onWrite((real, fd, bytes, offset) => {
          const room = Math.min(left, bytes.length - offset);
          if (room > 0) left -= room;
          else if (fs.existsSync(reserve)) throw fault('ENOSPC');
          return real(fd, bytes, offset, room > 0 ? room : bytes.length - offset);
        });
        const records = calls.map((call) => call.at(-1)!);
        const { reported } = appendAll(records);
        jest.restoreAllMocks();
        expect(reported.map(([record]) => record)).toEqual(records);
        const kept = reported.filter(([, fate]) => fate === 'written').map(([record]) => record);
        expect(kept.filter(({ t }) => t === 'E')).toHaveLength(2);
        if (at < 100) expect(kept.filter(({ t }) => t === 'B')).toHaveLength(0);
        const rows = await recovered();
        for (const [{ id }, fate] of reported)
          expect([fate, rows.has(id)]).toEqual([fate, fate === 'written']);
        for (const [id, row] of rowsOf([...begun, ...kept])) expect(rows.get(id)).toEqual(row);
        await journal.close();
        journal = open();
      }
    },
  );
});

describe('a sync', () => {
  it('that fails is not asked for again on the same file: what it lost is written again, and synced there', async () => {
    const real = fs.fdatasync;
    const synced: number[] = [];
    let failing = 2;
    jest.spyOn(fs, 'fdatasync').mockImplementation((fd: number, done: fs.NoParamCallback) => {
      synced.push(fs.fstatSync(fd).ino);
      if (failing-- > 0) process.nextTick(done, fault('EIO'));
      else real(fd, done);
    });
    const call = recordsOf('ended');
    const files = append(call);
    const settled = journal.sync();
    // Appended while the sync that is going to fail is under way.
    const other = recordsOf('begun');
    files.push(...append(other));
    await settled;
    expect(new Set(synced).size).toBe(synced.length);
    expect(synced).toHaveLength(3);
    expect(journal.degraded).toBeNull();
    // As after a power loss that left only what was synced.
    const last = (await logFiles(journal.runDirectory)).at(-1)!;
    const rows = [];
    for await (const batch of readDeadRows([last])) rows.push(...batch);
    expect(new Map(rows.map((row) => [row.id, row]))).toEqual(rowsOf([...call, ...other]));

    journal.release(files);
    await journal.close();
    expect(await readdir(journal.root)).toEqual([]);
  });

  it('that goes on failing keeps those who wait waiting; in strict mode no new call is taken', async () => {
    await journal.close();
    journal = open(0);
    let failing = true;
    const real = fs.fdatasync;
    jest.spyOn(fs, 'fdatasync').mockImplementation((fd: number, done: fs.NoParamCallback) => {
      if (failing) process.nextTick(done, fault('EIO'));
      else real(fd, done);
    });
    append(recordsOf('begun'));
    let reported = false;
    const waiting = journal.sync().then(() => (reported = true));
    await eventually(() => !journal.accepting);
    expect([reported, journal.degraded]).toEqual([false, 'EIO: injected']);
    failing = false;
    await waiting;
    expect([journal.accepting, journal.degraded]).toEqual([true, null]);
  });

  it('is shared by all who wait at the same time', async () => {
    const real = fs.fdatasync;
    const gate = deferred();
    let count = 0;
    jest.spyOn(fs, 'fdatasync').mockImplementation((fd: number, done: fs.NoParamCallback) => {
      count++;
      void gate.promise.then(() => real(fd, done));
    });
    const waiting = Array.from({ length: 200 }, () => {
      append(recordsOf('begun'));
      return journal.sync();
    });
    await eventually(() => count === 1);
    const late = append(recordsOf('begun')) && journal.sync();
    gate.resolve();
    await Promise.all(waiting);
    await late;
    expect(count).toBe(2);
  });

  it('that takes longer than the interval is followed by the next at once', async () => {
    await journal.close();
    journal = open(86_400_000);
    const real = fs.fdatasync;
    const gate = deferred();
    let count = 0;
    jest.spyOn(fs, 'fdatasync').mockImplementation((fd: number, done: fs.NoParamCallback) => {
      count++;
      void gate.promise.then(() => real(fd, done));
    });
    const { commits } = journal as unknown as { commits: JournalSync };
    append(recordsOf('begun'));
    commits.syncInBackground();
    await eventually(() => count === 1);
    append(recordsOf('begun'));
    // The interval passes twice meanwhile. The next time is a day away.
    commits.syncInBackground();
    commits.syncInBackground();
    gate.resolve();
    await eventually(() => count === 2);
  });

  it('is not asked for while everything is on the disk', async () => {
    await journal.close();
    journal = open(1);
    const { commits } = journal as unknown as { commits: JournalSync };
    const asked = jest.spyOn(commits, 'syncInBackground');
    // The name of the first file, then a record.
    for (const times of [1, 2]) {
      await eventually(() => asked.mock.calls.length === times);
      await timePasses(50, 'in which an interval would have passed often');
      expect(asked).toHaveBeenCalledTimes(times);
      append(recordsOf('begun').slice(0, 1));
    }
  });

  it('requested by a caller that was just notified of another is not forgotten', async () => {
    for (let i = 0; i < 50; i++) {
      append(recordsOf('begun'));
      await journal.sync();
    }
    // Two in step: one asks from within the other's turn.
    await Promise.all([1, 2].map(() => journal.sync().then(() => journal.sync())));
  });
});

it('takes nothing more once it is closed', async () => {
  await journal.close();
  expect(() => journal.append(recordsOf('begun')[0]!)).toThrow('closed');
});
