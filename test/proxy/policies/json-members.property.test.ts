import fc from 'fast-check';
import { NamesByLength } from '../../../src/bodies/folded-names.js';
import { JsonMembers } from '../../../src/proxy/policies/json-members.js';

const NAMES = new NamesByLength(['model', 'models', 'stream_options']);

function read(text: string | Buffer, step = 1_000_000): JsonMembers {
  const members = new JsonMembers(Buffer.from(text as string), NAMES);
  for (let steps = 0; !members.advance(step); steps++) if (steps > 100_000) throw new Error('endless');
  return members;
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const name = fc.constantFrom(
  'model',
  'Model',
  'MODEL',
  'mo\u0064el',
  'models',
  'modelſ',
  'a',
  'model ',
  'ｍodel',
  '',
);
const object = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.jsonValue(),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
    fc.array(tie('value'), { maxLength: 4 }),
  ),
})).value;

/** A JSON text, with bytes replaced, removed and added. */
const damaged = fc
  .tuple(
    fc.dictionary(name, object).map((value) => JSON.stringify(value, null, 1)),
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(...'{}[]",:\\ue1-+.\u0000\t\n x', '', '\ufeff', '"model"')), {
      maxLength: 3,
    }),
  )
  .map(([text, changes]) =>
    changes.reduce((changed, [at, by]) => {
      const index = at % (changed.length + 1);
      return changed.slice(0, index) + by + changed.slice(index + (at % 2));
    }, text),
  );

it('accepts what JSON.parse accepts as an object, and nothing else', () => {
  let accepted = 0;
  fc.assert(
    fc.property(fc.oneof(damaged, fc.string(), fc.json()), fc.integer({ min: 1, max: 50 }), (text, step) => {
      fc.pre(Buffer.from(text).toString() === text);
      const isValid = isJsonObject(text);
      if (isValid) accepted++;
      expect(read(text, step).problem === null).toBe(isValid);
    }),
    { numRuns: 2_000 },
  );
  expect(accepted).toBeGreaterThan(200);
});

it('finds each member of the outermost object by its name as any parser reads it, whatever the steps', () => {
  const spelled = fc.constantFrom(
    '"model"',
    '"Model"',
    '"\\u006dodel"',
    '"mod\\u0045l"',
    '"MODEL"',
    '"x"',
    '"models"',
    '"model "',
  );
  const member = fc.tuple(
    spelled,
    object.map((value) => JSON.stringify(value) ?? 'null'),
  );
  fc.assert(
    fc.property(fc.array(member, { maxLength: 6 }), fc.integer({ min: 1, max: 50 }), (members, step) => {
      const text = `{${members.map(([key, value]) => ` ${key} :\n${value} `).join(',')}}`;
      const expected = members
        .filter(([key]) => (JSON.parse(key) as string).toLowerCase() === 'model')
        .map(([, value]) => JSON.parse(value) as unknown);
      const found = read(text, step);
      expect(found.problem).toBeNull();
      expect(found.all('model').map((span) => found.parse(span))).toEqual(expected);
    }),
    { numRuns: 2_000 },
  );
});

it('finds names that only Go reads as the same', () => {
  expect(read('{"model\u017f":["a"],"\u017ftream_option\u017f":1}').all('models')).toHaveLength(1);
  expect(read('{"\\u017ftream_options":1}').all('stream_options')).toHaveLength(1);
});

it.each([
  ['a byte order mark', '\ufeff{"model":"m"}'],
  ['UTF-16', Buffer.from('{"model":"m"}', 'utf16le')],
  ['bytes that are not UTF-8', Buffer.from('7b226d6f64656c223a226dff227d', 'hex')],
  ['1,001 levels', `{"a":${'['.repeat(1_000)}${']'.repeat(1_000)}}`],
  ['an array', '[{"model":"m"}]'],
  ['nothing', ''],
])('rejects %s', (_, text) => {
  expect(read(text).problem).toMatch(/^the body is (not|nested)/);
});

it('reads 32 MiB in steps of which none takes long', () => {
  const body = Buffer.from(`{"messages":[${'[1,{"a":"b\\n"}],'.repeat(1_600_000)}0],"model":"m"}`);
  const members = new JsonMembers(body, NAMES);
  const before = process.cpuUsage();
  let steps = 0;
  while (!members.advance(262_144)) steps++;
  const { user, system } = process.cpuUsage(before);
  expect(members.all('model')).toHaveLength(1);
  expect(steps).toBeGreaterThan(90);
  // Some 3 ms each on an idle machine.
  expect((user + system) / steps).toBeLessThan(50_000);
});
