import fc from 'fast-check';
import { scanModel } from '../../src/tokens/model-scan.js';
import { StreamedModelScan } from '../../src/tokens/streamed-model-scan.js';

/** What the scan finds in a body that comes in pieces of these sizes, over and over. */
function scan(body: Buffer, sizes: readonly number[]): string | null {
  const found = new StreamedModelScan();
  for (let at = 0, i = 0; at < body.length; i++) {
    const piece = Buffer.from(body.subarray(at, at + sizes[i % sizes.length]!));
    found.add(piece);
    at += piece.length;
    // The read buffer is somebody else's again.
    piece.fill(0);
  }
  return found.model;
}

const inOnePiece = (text: string) => scan(Buffer.from(text), [Infinity]);

const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 6 });

describe('the model of a request that is streamed', () => {
  it.each<[string, string | null]>([
    ['{"model":"gpt-4o","messages":[', 'gpt-4o'],
    ['{"messages":[{"model":"x"},["model","x"]],"a":{"model":"y"},"model":"m"}', 'm'],
    ['{"messages":[{"content":"\\"model\\":\\"x\\""}],"model":"m"}', 'm'],
    ['{"a":"model","b":"x","model":"模型\\u002f\\"🙂"}', '模型/"🙂'],
    ['{"model":null,"b":"x"}', null],
    ['{"model":{"a":"x"},"model":"m"}', null],
    ['{"model":["x"]}', null],
    ['{"model":""}', null],
    ['{"xmodel":"x","models":"y","mod\\u0065l":"z"}', null],
    ['{"model":"cut', null],
    ['{"model":"bad \\escape"}', null],
    ['[{"model":"x"}]', null],
    ['{} {"model":"x"}', null],
    ['"model"', null],
    ['model', null],
    ['\u001f\ufffd', null],
    ['--boundary\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1', null],
    ['', null],
  ])('in %s is %s, wherever it is cut', (text, model) => {
    const body = Buffer.from(text);
    for (const size of [1, 2, 3, 5, 50, Infinity]) expect(scan(body, [size])).toBe(model);
  });

  it('is that of the whole body, for any JSON in any pieces', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .array(fc.constantFrom('\\', '"', 'x', '\\"', '{', 'x'.repeat(60)), { maxLength: 30 })
        .map((all) => all.join('')),
    );
    const key = fc.oneof(text, fc.constantFrom('model', 'xmodel', 'a'));
    const members = fc
      .array(fc.tuple(key, fc.oneof(fc.jsonValue(), text, fc.constant({ model: 'x' }))))
      .map((entries) => Object.fromEntries(entries) as Record<string, unknown>);
    fc.assert(
      fc.property(members, fc.nat(2), sizes, (value, indent, sizes) => {
        const body = Buffer.from(JSON.stringify(value, null, indent));
        expect(scan(body, sizes)).toBe(scanModel(body));
      }),
      { numRuns: 1_500 },
    );
  });

  it('never throws on garbage', () => {
    const shred = fc.array(
      fc.constantFrom('{', '}', '[', ']', '"', '\\', ',', ':', '"model"', '"model":"m"', ' ', '1', '\u0000'),
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          shred.map((parts) => Buffer.from(`{${parts.join('')}`)),
        ),
        sizes,
        (body, sizes) => {
          expect([null, expect.any(String)]).toContainEqual(scan(Buffer.from(body), sizes));
        },
      ),
      { numRuns: 1_000 },
    );
  });

  it('reads no more once it has the model, or it is certain that there is none', () => {
    for (const text of [
      '{"model":"m",',
      '--boundary',
      '[{',
      '{"model":5,',
      '{}',
      `{"model":"${'m'.repeat(17_000)}`,
    ]) {
      const found = new StreamedModelScan();
      found.add(Buffer.from(text));
      expect(found.done).toBe(true);
    }
  });

  it('keeps no more than a name, however long the texts and names before it', () => {
    const piece = Buffer.alloc(65_536, 'A');
    const found = new StreamedModelScan();
    found.add(Buffer.from('{"'));
    for (let i = 0; i < 200; i++) found.add(piece);
    found.add(Buffer.from('":"'));
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 400; i++) found.add(piece);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000);
    found.add(Buffer.from('","model":"m"}'));
    expect(found.model).toBe('m');
  });

  it('takes a time that grows with the body only, whatever it is made of', () => {
    const cost = (text: string) => {
      const chunk = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)));
      let least = Infinity;
      for (let i = 0; i < 3; i++) {
        const found = new StreamedModelScan();
        found.add(Buffer.from('{"a":"'));
        const before = process.cpuUsage();
        for (let piece = 0; piece < 40; piece++) found.add(chunk);
        const { user, system } = process.cpuUsage(before);
        least = Math.min(least, (user + system) / 1_000);
      }
      return least;
    };
    // 2.6 MB: some 6 ms; by the square, or with a search for each quote, it would be seconds.
    for (const text of ['x', '\\"', '\\\\', '"', '",', '{', '[1,', '"":0,', `"${'x'.repeat(47)}\\`, '\\'])
      expect(cost(text)).toBeLessThan(250);
  });

  it('is found in one piece as well', () => {
    expect(inOnePiece(`{"image":"${'A'.repeat(300_000)}","model":"m"}`)).toBe('m');
  });
});
