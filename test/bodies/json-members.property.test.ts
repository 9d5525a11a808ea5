import fc from 'fast-check';
import type { JsonMembers } from '../../src/bodies/json-members.js';
import { check, scaled } from '../support/property.js';
import { countSteps } from '../support/steps.js';
import { COUNTED_READERS } from './counted-readers.js';
import { membersOf } from './read-body.js';

const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 6 });

const read = (text: string | Buffer, chunks?: readonly number[]): JsonMembers =>
  membersOf(Buffer.from(text as string), chunks);

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

/** What a walk may let pass because no parser ends a string there: control characters, and escapes far from a quote. */
function isLenient(text: string): boolean {
  return /[\u0001-\u001f]/.test(text) || /\\(?!["\\/bfnrt]|u[0-9a-f]{4})/i.test(text);
}

it('accepts what JSON.parse accepts as an object, and nothing else that parsers could read differently', () => {
  let accepted = 0;
  check(
    fc.property(fc.oneof(damaged, fc.string(), fc.json()), sizes, (text, sizes) => {
      fc.pre(Buffer.from(text).toString() === text);
      const isValid = isJsonObject(text);
      if (isValid) accepted++;
      const isAccepted = read(text, sizes).problem === null;
      if (isValid || !isLenient(text)) expect(isAccepted).toBe(isValid);
    }),
    { numRuns: 2_000 },
  );
  expect(accepted).toBeGreaterThan(scaled(200));
});

it('finds each member of the outermost object by its name as any parser reads it, whatever the chunks', () => {
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
  check(
    fc.property(fc.array(member, { maxLength: 6 }), sizes, (members, sizes) => {
      const text = `{${members.map(([key, value]) => ` ${key} :\n${value} `).join(',')}}`;
      const expected = members
        .filter(([key]) => (JSON.parse(key) as string).toLowerCase() === 'model')
        .map(([, value]) => JSON.parse(value) as unknown);
      const found = read(text, sizes);
      expect(found.problem).toBeNull();
      expect(found.all('model').map(({ value }) => value)).toEqual(expected);
      for (const { start, end, value } of found.all('model'))
        expect(JSON.parse(Buffer.from(text).toString('utf8', start, end))).toEqual(value);
    }),
    { numRuns: 2_000 },
  );
});

it('finds names that only Go reads as the same', () => {
  expect(read('{"model\u017f":["a"],"\u017ftream_option\u017f":1}').all('models')).toHaveLength(1);
  expect(read('{"\\u017ftream_options":1}').all('stream_options')).toHaveLength(1);
});

it.each<[string, number]>([
  ['["a","b,\\"c"]', 2],
  ['[[1,2],[3]]', 2],
  ['[["a","b"],[],[[],[]]]', 3],
  ['[1,2,3]', 0],
  ['[]', 0],
  ['"a,b"', 0],
  ['{"a":["b","c"]}', 0],
  [`[${Array.from({ length: 5_000 }, () => '"text"').join()}]`, 5_000],
])('counts the prompts of %.30s: %d', (prompt, elements) => {
  for (const size of [1, 7, 65_536]) {
    const [member] = read(`{"n":["x","y"],"prompt": ${prompt} ,"a":["z"]}`, [size]).all('prompt');
    expect(member!.elements).toBe(elements);
  }
});

it.each([
  ['a byte order mark', '\ufeff{"model":"m"}'],
  ['UTF-16', Buffer.from('{"model":"m"}', 'utf16le')],
  ['bytes that are not UTF-8', Buffer.from('7b226d6f64656c223a226dff227d', 'hex')],
  ['a NUL in a text', '{"a":"\u0000","model":"m"}'],
  ['1,001 levels', `{"a":${'['.repeat(1_000)}${']'.repeat(1_000)}}`],
  ['an array', '[{"model":"m"}]'],
  ['a form', '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b--\r\n'],
  ['a body that is cut', '{"model":"m"'],
  ['nothing', ''],
])('rejects %s', (_, text) => {
  expect(read(text).problem).toMatch(/^the body is (not|nested)/);
  expect(read(text).all('model')).toEqual([]);
});

it.each(['{"model":"a\tb"}', '{"x":1,"model":"\\x and more text"}', '{"generationConfig":{"a":"\n"}}'])(
  'rejects a value that is read and that JSON.parse refuses: %j',
  (text) => {
    expect(read(text).problem).toMatch(
      /^the value of "(model|generationConfig)" is not valid JSON, at byte \d+$/,
    );
  },
);

it('has no value where it is longer than 16 KiB', () => {
  const [member] = read(`{"model":"${'m'.repeat(17_000)}"}`).all('model');
  expect(member).toMatchObject({ start: 9, end: 17_011, value: undefined });
});

describe('an escape that a lenient reader takes unchecked', () => {
  /** `cheap` to a reader by quotes, `dear` to one that swallows a quote; it stands in both texts. */
  const hides = (escape: string) =>
    `{"a":"${escape}",",'model':'dear','c':":",'d':'","model":"cheap","e":"'}//"}`;

  it.each([
    ...[
      '\\x',
      '\\x1',
      '\\u',
      '\\u1',
      '\\u12',
      '\\u123',
      '\\q\\u',
      '\\u\\\\',
      '\\x\\"',
      '\\u\\"12',
      'text \\u00',
    ],
    // The reader is one character off from the first on, and stays so however long the chain is.
    ...['\\xa\\\\xb\\\\xc', `\\xa\\${'\\xb\\'.repeat(50)}`, `\\u123\\${'n\\u12\\'.repeat(20)}`],
  ])('and that may reach over a quote makes the body uncertain, wherever it is cut: %s', (escape) => {
    const text = hides(escape);
    for (const size of [1, 2, 3, 4, 5, 6, 7, 11, 65_536])
      expect(read(text, [size]).problem).toMatch(/^the body is not/);
    for (let cut = 1; cut < text.length; cut++) expect(read(text, [cut, 65_536]).problem).not.toBeNull();
  });

  it.each([
    '\\x41 and text',
    '\\q and text',
    '\\u12 and text',
    `\\'${'x'.repeat(300)}`,
    '\\\\x',
    '\\\\\\\\u',
    '\\u0041',
    '\\n',
  ])('far from a quote, or one that is none, does not: %s', (escape) => {
    for (const size of [1, 2, 3, 5, 65_536]) {
      const members = read(`{"a":"${escape}","model":"m"}`, [size]);
      expect(members.problem).toBeNull();
      expect(members.all('model')[0]!.value).toBe('m');
    }
  });
});

it('reads a large body in a number of steps that grows with its length only', async () => {
  const body = Buffer.from(`{"messages":[${'[1,{"a":"b\\n"}],'.repeat(100_000)}0],"model":"m"}`);
  expect(membersOf(body).all('model')).toHaveLength(1);
  const { steps } = await countSteps(COUNTED_READERS, 'request', body);
  expect(steps / body.length).toBeLessThan(20);
});
