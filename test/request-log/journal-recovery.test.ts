import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { v7 as uuidv7 } from 'uuid';
import type { JournalRecord } from '../../src/request-log/journal/record-codec.js';
import { readDeadRows } from '../../src/request-log/journal/recovery.js';
import { drainerOf, runDirectoryName } from '../../src/request-log/journal/run-directories.js';
import type { LogRow } from '../../src/request-log/columns.js';
import { liveBytes } from '../support/live-bytes.js';
import { never } from '../support/never.js';
import { check } from '../support/property.js';
import { FULL } from '../support/scale.js';
import { linesOf, type Progress, recordsOf, rowsOf } from './journal-calls.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-journal-'));
});
afterAll(() => rm(folder, { recursive: true }));

let runs = 0;

/** Writes these bytes as the files of a killed run and reads them as the next start does. */
async function recover(...files: Buffer[]): Promise<{ rows: Map<string, LogRow>; corrupt: number }> {
  const run = join(folder, String(++runs));
  const paths = files.map((_, i) => `${run}-${i}.log`);
  await Promise.all(files.map((bytes, i) => writeFile(paths[i]!, bytes)));
  const rows = new Map<string, LogRow>();
  let corrupt = 0;
  for await (const batch of readDeadRows(paths, (count) => (corrupt += count))) {
    // Postgres rejects a statement that touches a row twice.
    if (new Set(batch.map(({ id }) => id)).size < batch.length) throw new Error('a row twice in one batch');
    for (const row of batch) {
      const before = rows.get(row.id);
      // As the table judges (insert-rows.ts).
      if (before === undefined || (before.outcome === 'interrupted' && row.outcome !== 'interrupted')) {
        rows.set(row.id, row);
      }
    }
  }
  await Promise.all(paths.map((path) => rm(path)));
  return { rows, corrupt };
}

/** Jest's own comparison, thousands of times over, would take most of a minute. */
function expectRows(rows: Map<string, LogRow>, left: readonly JournalRecord[]): void {
  const expected = rowsOf(left);
  if (!isDeepStrictEqual(rows, expected)) expect(rows).toEqual(expected);
}

/** Every offset below this one; without `npm run test:faults` each 16th, and all beside the ends of lines. */
function places(count: number): number[] {
  const all = Array.from({ length: count }, (_, at) => at);
  const isEdge = (at: number) => starts.some((start) => Math.abs(start - at) <= 2);
  return FULL ? all : all.filter((at) => at % 16 === 0 || isEdge(at));
}

/** Tries them all, many at a time, for each waits for the disk. */
async function atEvery(count: number, attempt: (at: number) => Promise<void>): Promise<void> {
  const left = places(count);
  while (left.length > 0) await Promise.all(left.splice(0, 32).map(attempt));
}

/** A small load: calls in every state, interleaved, and one whose user agent looks like a record. */
function smallLoad(): JournalRecord[] {
  const calls = [
    recordsOf('read'),
    recordsOf('ended', 'client_aborted'),
    recordsOf('begun'),
    recordsOf('spilled', 'truncated'),
    recordsOf('read', 'interrupted', 'v1 deadbeef {"t":"B","id":"x"} \n Ünï𝄞'),
  ];
  return [0, 1, 2].flatMap((step) => calls.flatMap((call) => call[step] ?? []));
}

const records = smallLoad();
const lines = linesOf(records);
const bytes = Buffer.concat(lines);
/** Where each line begins; the end of the file last. */
const starts = lines.reduce((at, line) => [...at, at.at(-1)! + line.length], [0]);

describe('the journal of a process that died', () => {
  never('gives every record back when nothing is damaged', async () => {
    const { rows, corrupt } = await recover(bytes);
    expect(rows).toEqual(rowsOf(records));
    expect(rows.size).toBe(5);
    expect(corrupt).toBe(0);
  });

  it('gives every intact record back when the file is cut at any byte', async () => {
    await atEvery(bytes.length + 1, async (cut) => {
      const whole = records.filter((_, i) => starts[i + 1]! <= cut);
      const { rows, corrupt } = await recover(bytes.subarray(0, cut));
      expectRows(rows, whole);
      if ((corrupt === 0) !== starts.includes(cut))
        throw new Error(`${corrupt} damaged lines, cut at ${cut}`);
    });
  });

  never.each([0x01, 0x80, 0xff])(
    'gives every intact record back when any byte is changed by %p',
    async (mask) => {
      for (const at of places(bytes.length)) {
        const damaged = Buffer.from(bytes);
        damaged[at]! ^= mask;
        const { rows, corrupt } = await recover(damaged);
        // A damaged newline spoils neither of the records it parts; the last one is part of its record.
        const parts = starts.includes(at + 1) && at + 1 < bytes.length;
        expectRows(
          rows,
          records.filter((_, i) => parts || at < starts[i]! || at >= starts[i + 1]!),
        );
        expect(corrupt).toBeGreaterThan(0);
      }
    },
  );

  it('gives every intact record back when any byte has become a newline', async () => {
    await atEvery(bytes.length, async (at) => {
      const damaged = Buffer.from(bytes);
      if (damaged[at] === 0x0a) return;
      damaged[at] = 0x0a;
      const { rows } = await recover(damaged);
      expectRows(
        rows,
        records.filter((_, i) => at < starts[i]! || at >= starts[i + 1]!),
      );
    });
  });

  it('survives stretches of damage anywhere and keeps what they leave whole', async () => {
    const damage = fc.record({
      at: fc.nat(bytes.length - 1),
      junk: fc.uint8Array({ minLength: 2, maxLength: 400 }),
    });
    await check(
      fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), async (damages) => {
        const damaged = Buffer.from(bytes);
        for (const { at, junk } of damages) damaged.set(junk.subarray(0, bytes.length - at), at);
        const { rows } = await recover(damaged);
        const whole = records.filter((_, i) => damaged.subarray(starts[i], starts[i + 1]).equals(lines[i]!));
        // Records next to a damaged newline may be found as well.
        for (const [id, row] of rowsOf(whole)) {
          if (row.outcome !== 'interrupted') expect(rows.get(id)).toMatchObject({ outcome: row.outcome });
          else expect(rows.has(id)).toBe(true);
        }
        for (const id of rows.keys()) expect(records.some((record) => record.id === id)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('has the job of a stream that was killed, and none if the stream has reported what it used', async () => {
    const [B, E, U] = recordsOf('read') as [JournalRecord, JournalRecord, JournalRecord];
    const rowOf = async (...records: JournalRecord[]) =>
      (await recover(Buffer.concat(linesOf(records)))).rows.get(B.id)!;
    const job = '{"kind":"response","digest":"00","sealed":"AA=="}';
    const soFar: JournalRecord = { ...U, outcome: 'interrupted', duration_ms: null, usage_final: false, job };
    expect(await rowOf(B, soFar)).toMatchObject({ outcome: 'interrupted', usage_final: false, job });
    expect(await rowOf(B, soFar, E, { ...U, usage_final: false })).toMatchObject({ job });
    const whole = await rowOf(B, soFar, E, { ...U, usage_final: true });
    expect([whole.usage_final, whole.job]).toEqual([true, undefined]);
  });

  never('has the newest usage so far of a call that went on, until its end says more', async () => {
    const [B, E, U] = recordsOf('read') as [JournalRecord, JournalRecord, JournalRecord];
    const soFar = (tokens: number): JournalRecord => ({
      ...U,
      outcome: 'interrupted',
      duration_ms: null,
      prompt_tokens: tokens,
    });
    const rowOf = async (...records: JournalRecord[]) =>
      (await recover(Buffer.concat(linesOf(records)))).rows.get(B.id)!;
    expect(await rowOf(B, soFar(10), soFar(20))).toMatchObject({
      outcome: 'interrupted',
      prompt_tokens: 20,
    });
    expect(await rowOf(B, soFar(10), E)).toMatchObject({
      outcome: 'completed',
      status: 200,
      prompt_tokens: 10,
    });
    const whole = await rowOf(B, soFar(10), soFar(20), E, U);
    expect(whole).toEqual(rowsOf([B, E, U]).get(B.id));
  });

  it('of a call whose end is damaged has the usage, and says that its end is not known', async () => {
    const [B, E, U] = recordsOf('read') as [JournalRecord, JournalRecord, JournalRecord];
    const [begin, end, usage] = linesOf([B, E, U]) as [Buffer, Buffer, Buffer];
    end[20]! ^= 0xff;
    const { rows, corrupt } = await recover(Buffer.concat([begin, end, usage]));
    expect(corrupt).toBe(1);
    expect(rows.get(B.id)).toMatchObject({
      outcome: 'interrupted',
      status: null,
      duration_ms: null,
      model: 'gpt-4o',
      prompt_tokens: 1,
      completion_tokens: 2,
    });
  });

  never('is read by the worker with its number, and by the first one if there is none', () => {
    const runs = [1, 2, 3].map((worker) => runDirectoryName(uuidv7(), worker));
    expect(runs.map((run) => drainerOf(run, 2))).toEqual([1, 2, 1]);
  });

  never('needs no order, minds no repetition and no orphan, over any number of files', async () => {
    const progress = fc.constantFrom<Progress>('begun', 'ended', 'read', 'spilled');
    const outcome = fc.constantFrom('completed', 'client_aborted', 'upstream_error', 'interrupted' as const);
    await check(
      fc.asyncProperty(
        fc.array(fc.tuple(progress, outcome), { minLength: 1, maxLength: 12 }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        fc.boolean(),
        async (calls, chance, orphans) => {
          const next = () => chance.next().value as number;
          let left = calls.flatMap(([how, why]) => recordsOf(how, why));
          if (orphans) left = left.filter(() => next() > 0.2);
          const repeated = left.flatMap((record) => (next() < 0.3 ? [record, record] : [record]));
          const shuffled = repeated
            .map((record) => ({ record, order: next() }))
            .sort((a, b) => a.order - b.order)
            .map(({ record }) => record);
          const cuts = [Math.floor(next() * shuffled.length), Math.floor(next() * shuffled.length)].sort();
          const files = [
            shuffled.slice(0, cuts[0]),
            shuffled.slice(cuts[0], cuts[1]),
            shuffled.slice(cuts[1]),
          ];
          const { rows, corrupt } = await recover(...files.map((some) => Buffer.concat(linesOf(some))));
          expect(new Set(rows.keys())).toEqual(new Set(rowsOf(left).keys()));
          for (const [id, row] of rowsOf(left)) expect(rows.get(id)!.outcome).toBe(row.outcome);
          expect(corrupt).toBe(0);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('reads a file that is all one damaged line in little memory', async () => {
    const path = join(folder, 'zeros.log');
    await writeFile(path, bytes);
    // Zeros without a newline, as some file systems leave after a power loss; a hole, so that the disk is spared.
    await truncate(path, 512 * 1024 * 1024);
    await writeFile(path, Buffer.concat([Buffer.from('\n'), bytes]), { flag: 'a' });
    const before = liveBytes();
    let peak = before;
    let corrupt = 0;
    const found: LogRow[] = [];
    for await (const batch of readDeadRows([path], (count) => {
      corrupt += count;
      peak = Math.max(peak, liveBytes());
    })) {
      found.push(...batch);
    }
    expect(found).toHaveLength(5);
    expect(corrupt).toBeGreaterThan(0);
    expect(peak - before).toBeLessThan(96 * 1024 * 1024);
  });
});
