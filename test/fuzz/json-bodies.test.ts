import JSON5 from 'json5';
import { membersOf, readBody, readForRow } from '../bodies/read-body.js';
import { FULL } from '../support/scale.js';
import { chunkSizes, COMPARED, jsonBody } from './json-bodies.js';
import { PythonReader, readAsFastjson, type ReadMembers } from './lenient-readers.js';
import { Random } from './random.js';

const CASES = FULL ? 1_000_000 : 10_000;
const BATCH = 1_000;

jest.setTimeout(1_200_000);

const random = new Random();
const fold = (name: string) => name.toLowerCase().toUpperCase();
const compared = new Set(COMPARED.map(fold));

/** What the gateway is certain of; null if it is not. */
function certain(text: string): ReadMembers | null {
  const body = Buffer.from(text);
  const sizes = chunkSizes(random);
  const members = membersOf(body, sizes);
  if (members.problem !== null) return null;
  const { values } = readBody(body, sizes).json!;
  const named = COMPARED.flatMap((name) =>
    values.of(name).map((value, i) => ({ ...value, value: members.all(name)[i]!.value })),
  );
  return named
    .sort((a, b) => a.start - b.start)
    .map(({ name, value }) => [name, typeof value === 'string' ? value : null]);
}

/** Of members with the same name, most parsers keep the last one. */
function lastOnes(members: ReadMembers): ReadMembers {
  return [...new Map(members)].sort(([a], [b]) => (a < b ? -1 : 1));
}

const ofCompared = (members: ReadMembers) => members.filter(([name]) => compared.has(fold(name)));

function parse(parser: { parse(text: string): unknown }, text: string): ReadMembers | null {
  try {
    const value = parser.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
    return Object.entries(value).map(([name, one]) => [name, typeof one === 'string' ? one : null]);
  } catch {
    return null;
  }
}

it(`no reader finds other members than the gateway is certain of (seed ${random.seed})`, async () => {
  const python = PythonReader.exists ? new PythonReader() : null;
  let found = 0;
  for (let n = 0; n < CASES; n += BATCH) {
    const texts = Array.from({ length: BATCH }, () => jsonBody(random));
    const ours = texts.map(certain);
    const pythons = (await python?.read(texts)) ?? [];
    texts.forEach((text, i) => {
      const mine = ours[i]!;
      const strict = parse(JSON, text);
      // Whatever is valid is certain.
      if (mine === null) return expect([text, strict]).toEqual([text, null]);
      if (mine.length > 0) found++;
      const ofRow = readForRow(Buffer.from(text), chunkSizes(random)).model;
      const last = new Map(strict).get('model') || null;
      if (strict !== null && ofRow !== last) expect([text, ofRow]).toEqual([text, last]);
      for (const read of [readAsFastjson(text), pythons[i] ?? null])
        if (read !== null && !same(ofCompared(read), mine))
          expect([text, ofCompared(read)]).toEqual([text, mine]);
      for (const read of [strict, parse(JSON5, text)])
        if (read !== null && !same(lastOnes(ofCompared(read)), lastOnes(mine)))
          expect([text, lastOnes(ofCompared(read))]).toEqual([text, lastOnes(mine)]);
    });
  }
  await python?.stop();
  expect(found).toBeGreaterThan(CASES / 10);
});

/** Jest's comparison takes longer than all the readers. */
function same(a: ReadMembers, b: ReadMembers): boolean {
  return a.length === b.length && a.every(([name, value], i) => name === b[i]![0] && value === b[i]![1]);
}
