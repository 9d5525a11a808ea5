import fc from 'fast-check';
import { modelFromPath, scanModel } from '../../src/tokens/model-scan.js';

const scan = (text: string) => scanModel(Buffer.from(text));

describe('the model a request names', () => {
  it.each<[string, string | null]>([
    ['{"model":"gpt-4o","messages":[]}', 'gpt-4o'],
    [' \r\n{ "messages" : [ { "content" : "hi" } ] ,\t"model" : "gpt-4o" } ', 'gpt-4o'],
    [
      '{"max_tokens":1024,"messages":[{"role":"user","content":"\\"model\\":\\"x\\""}],"model":"claude"}',
      'claude',
    ],
    ['{"messages":[{"content":"a\\\\"},{"content":"\\\\\\"}]"}],"model":"m"}', 'm'],
    ['{"model":"a\\u002fb\\"c"}', 'a/b"c'],
    ['{"model":"模型🙂"}', '模型🙂'],
    ['{"model":"m","messages":[{"content":"never closed', 'm'],
    // Not the request's own member, or no name.
    ['{"metadata":{"model":"x"},"tools":[{"model":"y"}]}', null],
    ['{"messages":[{"content":"{\\"model\\":\\"x\\"}"}]}', null],
    ['{"a":"model","b":"x"}', null],
    // No client writes the name with an escape: to decode each key costs too much.
    ['{"mod\\u0065l":"x"}', null],
    ['{"Model":"x","model2":"y","mode":"z"}', null],
    ['{"model":null}', null],
    ['{"model":5}', null],
    ['{"model":""}', null],
    ['{"model":{"name":"x"}}', null],
    ['{"model":"cut', null],
    ['{"model":"bad \\escape"}', null],
    ['{"model"', null],
    ['{"model" "x"}', null],
    ['{,"model":"x"}', null],
    ['{"a":,"model":"x"}', null],
    ['{"a":1 "model":"x"}', null],
    ['{"a":"unclosed,"model":"x"}', null],
    ['[{"model":"x"}]', null],
    ['"model"', null],
    ['', null],
    ['   ', null],
    ['--boundary\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1', null],
  ])('in %s is %s', (body, model) => {
    expect(scan(body)).toBe(model);
  });

  it('is found behind an image, a hundred thousand brackets and a text of quotes', () => {
    const image = 'A'.repeat(100_000);
    expect(scan(`{"image":"${image}","model":"m"}`)).toBe('m');
    expect(scan(`{"deep":${'['.repeat(100_000)}${']'.repeat(100_000)},"model":"m"}`)).toBe('m');
    expect(scan(`{"text":"${'\\"'.repeat(60_000)}","model":"m"}`)).toBe('m');
    expect(scan(`{"text":"${'\\\\'.repeat(60_000)}","model":"m"}`)).toBe('m');
  });

  it('is no name of more than 16 KiB', () => {
    expect(scan(`{"model":"${'m'.repeat(16_000)}"}`)).toHaveLength(16_000);
    expect(scan(`{"model":"${'m'.repeat(17_000)}"}`)).toBeNull();
  });

  it('is what JSON.parse would say, for any JSON', () => {
    const key = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('model', 'a', '"', '\\', '{'));
    const object = fc
      .array(
        fc.tuple(key, fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' }), fc.constant({ model: 'x' }))),
      )
      .map((members) => Object.fromEntries(members) as Record<string, unknown>);
    fc.assert(
      fc.property(
        object,
        fc.nat(3),
        fc.constantFrom(0, 2_000),
        fc.boolean(),
        (members, indent, padding, first) => {
          const pad = padding === 0 ? {} : { pad: '\\"'.repeat(padding) };
          const value = first ? { ...pad, ...members } : { ...members, ...pad };
          const { model } = JSON.parse(JSON.stringify(value)) as { model?: unknown };
          const expected = typeof model === 'string' && model !== '' ? model : null;
          expect(scan(JSON.stringify(value, null, indent))).toBe(expected);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('never throws on garbage', () => {
    const shred = fc.array(
      fc.constantFrom(
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
        '\u0000',
      ),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 300 }),
          shred.map((parts) => Buffer.from(`{${parts.join('')}`)),
        ),
        (body) => {
          expect([null, expect.any(String)]).toContainEqual(scanModel(Buffer.from(body)));
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('the model a path names', () => {
  it.each<[string, string | null]>([
    ['/v1beta/models/gemini-2.5-flash:generateContent', 'gemini-2.5-flash'],
    ['/v1beta/models/gemini-2.5-flash:streamGenerateContent', 'gemini-2.5-flash'],
    ['/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent', 'gemini-2.5-pro'],
    ['/v1beta/models/tuned%2Fmine:generateContent', 'tuned/mine'],
    ['/v1beta/models/a:b:countTokens', 'a:b'],
    ['/v1beta/models/broken%:generateContent', null],
    ['/v1beta/models/gemini-2.5-flash', null],
    ['/v1beta/models/:generateContent', null],
    ['/model/us.amazon.nova-lite-v1%3A0/converse', 'us.amazon.nova-lite-v1:0'],
    [
      '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fm/invoke',
      'arn:aws:bedrock:us-east-1:1:inference-profile/m',
    ],
    ['/model/m/invoke-with-response-stream', 'm'],
    ['/model/m/count-tokens', 'm'],
    ['/model/m/async', null],
    ['/openai/deployments/my-gpt/chat/completions', 'my-gpt'],
    ['/deployments/my-gpt/embeddings', 'my-gpt'],
    ['/openai/deployments', null],
    ['/v1/chat/completions', null],
  ])('%s is %s', (path, model) => {
    expect(modelFromPath(path)).toBe(model);
  });
});
