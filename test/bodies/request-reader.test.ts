import fc from 'fast-check';
import { endUserOf } from '../../src/bodies/end-user.js';
import { MAX_VALUES } from '../../src/bodies/kept-values.js';
import { JsonMembers } from '../../src/bodies/json-members.js';
import { RequestReader } from '../../src/bodies/request-reader.js';
import { liveBytes } from '../support/live-bytes.js';
import { check } from '../support/property.js';
import { membersOf, readBody, readForRow } from './read-body.js';

const model = (text: string, sizes?: readonly number[]) => readBody(Buffer.from(text), sizes).model;
const ofRow = (text: string, sizes?: readonly number[]) => readForRow(Buffer.from(text), sizes).model;

const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 6 });

describe('the model that a request names', () => {
  it.each<[string, string | null]>([
    ['{"model":"gpt-4o","messages":[]}', 'gpt-4o'],
    [' \r\n{ "messages" : [ { "content" : "hi" } ] ,\t"model" : "gpt-4o" } ', 'gpt-4o'],
    [
      '{"max_tokens":1024,"messages":[{"role":"user","content":"\\"model\\":\\"x\\""}],"model":"claude"}',
      'claude',
    ],
    ['{"messages":[{"model":"x"},["model","x"]],"a":{"model":"y"},"model":"m"}', 'm'],
    ['{"messages":[{"content":"a\\\\"},{"content":"\\\\\\"}]"}],"model":"m"}', 'm'],
    ['{"a":"model","b":"x","model":"模型\\u002f\\"🙂"}', '模型/"🙂'],
    ['{"mod\\u0065l":"m"}', 'm'],
    ['{"model":null,"model":{"a":"x"},"model":"","model":"x","model":"m"}', 'm'],
    ['{"model":"x","model":"m","Model":"y"}', 'm'],
    ['{"model":"x","model":null}', null],
    [`{"input":[[${'1234,'.repeat(50)}1],[],[${'-1.5e3 ,'.repeat(50)}1]],"model":"m"}`, 'm'],
    ['{\n  "a": {\n    "model": "x"\n  },\n  "model": "m"\n}', 'm'],
    [`{"a":[1.23456789012345678901234567890123,{"model":"x"},"model"],"model":"m"}`, 'm'],
    ['{"model":"m","messages":[{"content":"never closed', 'm'],
    ['{"model":"m"} trailing', 'm'],
    // Not the request's own member, or no name.
    ['{"metadata":{"model":"x"},"tools":[{"model":"y"}]}', null],
    ['{"messages":[{"content":"{\\"model\\":\\"x\\"}"}]}', null],
    ['{"Model":"x","model2":"y","xmodel":"x","models":"y","mode":"z"}', null],
    ['{"model":5}', null],
    ['{"model":["x"]}', null],
    ['{"model":"cut', null],
    ['{"model":"bad \\escape"}', null],
    ['{"model":"a raw \t tab"}', null],
    ['{"model"', null],
    ['{"model" "x"}', null],
    ['{,"model":"x"}', null],
    ['{"a":,"model":"x"}', null],
    ['{"a":1 "model":"x"}', null],
    ['{"a":"unclosed,"model":"x"}', null],
    ['[{"model":"x"}]', null],
    ['{} {"model":"x"}', null],
    ['"model"', null],
    ['model', null],
    ['\u001f\ufffd', null],
    ['', null],
    ['   ', null],
    ['--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--b--\r\n', 'whisper-1'],
    ['--boundary\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1', null],
  ])('in %s is %s, wherever it is cut', (text, name) => {
    for (const size of [1, 2, 3, 5, 50, 65_536]) {
      expect(model(text, [size])).toBe(name);
      expect(ofRow(text, [size])).toBe(name);
    }
  });

  it('is found behind an image, a thousand brackets and texts of quotes', () => {
    expect(model(`{"image":"${'A'.repeat(300_000)}","model":"m"}`)).toBe('m');
    expect(model(`{"deep":${'['.repeat(900)}${']'.repeat(900)},"model":"m"}`)).toBe('m');
    expect(model(`{"text":"${'\\"'.repeat(60_000)}","model":"m"}`)).toBe('m');
    expect(model(`{"text":"${'\\\\'.repeat(60_000)}","model":"m"}`)).toBe('m');
  });

  it('is no name of more than 16 KiB', () => {
    for (const chunk of [100, 5_000, 65_536]) {
      expect(model(`{"model":"${'m'.repeat(16_000)}"}`, [chunk])).toHaveLength(16_000);
      expect(model(`{"model":"${'m'.repeat(17_000)}"}`, [chunk])).toBeNull();
    }
  });

  it('is what JSON.parse would say, for any JSON in any chunks', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .array(fc.constantFrom('\\', '"', 'x', '\\"', '{', 'x'.repeat(60)), { maxLength: 30 })
        .map((all) => all.join('')),
    );
    const numbers = fc.array(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })));
    const key = fc.oneof(text, fc.constantFrom('model', 'Model', 'xmodel', 'a'));
    const members = fc
      .array(fc.tuple(key, fc.oneof(fc.jsonValue(), text, numbers, fc.constant({ model: 'x' }))))
      .map((entries) => Object.fromEntries(entries) as Record<string, unknown>);
    check(
      fc.property(members, members, fc.nat(2), sizes, (value, next, indent, sizes) => {
        const [one, other] = [value, next].map((part) => JSON.stringify(part, null, indent));
        // With members twice.
        const json = `${one!.slice(0, -1)}${one === '{}' || other === '{}' ? '' : ','}${other!.slice(1)}`;
        const named = (JSON.parse(json) as { model?: unknown }).model;
        const body = Buffer.from(json);
        const expected = typeof named === 'string' && named !== '' ? named : null;
        expect(readBody(body, sizes).model).toBe(expected);
        expect(readForRow(body, sizes).model).toBe(expected);
        expect(endUserOf(readForRow(body, sizes).json!)).toEqual(endUserOf(readBody(body, sizes).json!));
        expect(membersOf(body, sizes).problem).toBeNull();
      }),
      { numRuns: 1_500 },
    );
  });

  it('never throws on garbage', () => {
    const shred = fc.array(
      fc.constantFrom(
        ...[
          '{',
          '}',
          '[',
          ']',
          '"',
          '\\',
          ',',
          ':',
          '"model"',
          '"model":"m"',
          ' ',
          '1',
          'null',
          '-',
          '\u0000',
        ],
        ...['\\x', '\\u12', '"n":1,'],
      ),
    );
    check(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          shred.map((parts) => Buffer.from(`{${parts.join('')}`)),
        ),
        sizes,
        (body, sizes) => {
          expect([null, expect.any(String)]).toContainEqual(readBody(Buffer.from(body), sizes).model);
          expect([null, expect.any(String)]).toContainEqual(readForRow(Buffer.from(body), sizes).model);
          membersOf(Buffer.from(body), sizes);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('what is kept of a body', () => {
  /** Bytes that the chunks take in memory once they have passed. */
  function kept(begin: string, chunk: Buffer, end: string): { bytes: number; reader: RequestReader } {
    const reader = new RequestReader();
    reader.add(Buffer.from(begin));
    const before = liveBytes();
    for (let i = 0; i < 400; i++) reader.add(chunk);
    const bytes = liveBytes() - before;
    reader.add(Buffer.from(end));
    return { bytes, reader };
  }

  it.each([
    ['a text', '{"a":"', '","model":"m"}'],
    ['a name', '{"', '":1,"model":"m"}'],
    ['a name of an inner object', '{"a":{"', '":1},"model":"m"}'],
    ['a value that is looked for', '{"user":"', '","model":"m"}'],
  ])('is no more than short values, however long %s is', (_, begin, end) => {
    const { bytes, reader } = kept(begin, Buffer.alloc(65_536, 'A'), end);
    // All of it would be 26 MB.
    expect(bytes).toBeLessThan(4_000_000);
    expect(reader.model).toBe('m');
  });

  it('for a row is the last value of each name, and nothing once the row has it', () => {
    const reader = new RequestReader(false);
    reader.add(
      Buffer.from(`{${'"user":"a","model":"x",'.repeat(100_000)}"user":"b","stream":1,"model":"m"}`),
    );
    expect([...reader.json!.values.all.values()].flat().map(({ text }) => text)).toEqual(['"b"', '"m"']);
    expect(reader.model).toBe('m');
    reader.forget();
    expect(reader.json!.values.all.size).toBe(0);
    expect(reader.model).toBe('m');
  });

  it('has the output limit also where its parts come in several chunks', () => {
    const reader = new RequestReader(false);
    const limits = ['{"model":"m","max_tokens":7,', '"messages":[{"max_tokens":9}],', '"n":3}'].map(
      (chunk) => {
        reader.add(Buffer.from(chunk));
        const limit = reader.outputLimit('/v1/chat/completions');
        reader.forget();
        return limit;
      },
    );
    expect(limits).toEqual([7, 7, 21]);
  });

  it('is a number of values that no body can raise', () => {
    const many = (count: number) => `{${Array.from({ length: count }, () => '"n":1').join(',')}}`;
    expect(membersOf(Buffer.from(many(MAX_VALUES))).problem).toBeNull();
    const more = readBody(Buffer.from(many(100_000)));
    expect(more.json!.all('n')).toHaveLength(MAX_VALUES);
    expect(more.json!.problem).toMatch(/^the body has more than 32 members/);
  });
});

it.each([
  ['was read for a row only', new RequestReader(false), '{"model":"m"}'],
  ['was not read to its end', new RequestReader(), '{"model":"m",'],
])('nothing is certain about a body that %s', (_, reader, text) => {
  const body = Buffer.from(text);
  reader.add(body);
  expect(new JsonMembers(body, reader.json).problem).toBe('the body was not read as a whole');
});
