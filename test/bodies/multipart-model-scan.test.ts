import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { MultipartModelScan } from '../../src/bodies/multipart-model-scan.js';
import { check } from '../support/property.js';

/** What the scan finds in a body that arrives in chunks of these sizes, over and over. */
function scan(body: Buffer, sizes: readonly number[]): MultipartModelScan {
  const found = new MultipartModelScan();
  for (let at = 0, i = 0; at < body.length; i++) {
    const chunk = Buffer.from(body.subarray(at, at + sizes[i % sizes.length]!));
    found.add(chunk);
    at += chunk.length;
    // The read buffer is used again.
    chunk.fill(0);
  }
  return found;
}

const FILE =
  'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\n';
const part = (name: string, value: string) =>
  `Content-Disposition: form-data; name="${name}"\r\n\r\n${value}`;
const form = (...parts: string[]) => `${parts.map((one) => `--b\r\n${one}\r\n`).join('')}--b--\r\n`;

describe('the model of a multipart request', () => {
  it.each<[string, string | null]>([
    [form(part('model', 'whisper-1')), 'whisper-1'],
    [form(`${FILE}\r\n--\r\n--a\r\n`, part('model', 'whisper-1')), 'whisper-1'],
    [form(`${FILE}name="model"\r\n\r\nx`, part('language', 'de'), part('model', '模型 🙂')), '模型 🙂'],
    [form(part('prompt', ''), FILE, part('model', 'm')), 'm'],
    [form(`content-type: text/plain\r\ncontent-disposition:form-data; name=model\r\n\r\nm`), 'm'],
    [form(part('model', 'a'), part('model', 'b')), 'a'],
    [form('\r\nx', part('model', 'm')), 'm'],
    [form(part('models', 'x'), part('xmodel', 'y')), null],
    [form('Content-Disposition: form-data; name="model"; filename="m"\r\n\r\nx'), null],
    [form(part('model', '')), null],
    [form(part('model', 'm'.repeat(256))), 'm'.repeat(256)],
    [form(part('model', 'm'.repeat(257))), null],
    [`${form(part('a', 'b'))}--b\r\n${part('model', 'after the end')}\r\n--b--\r\n`, null],
    [`--b\r\n${part('model', 'cut')}`, null],
    [`--b--\r\n${part('model', 'x')}`, null],
    [`-b\r\n${part('model', 'x')}\r\n-b--\r\n`, null],
    [`--${'b'.repeat(100)}\r\n${part('model', 'x')}\r\n--${'b'.repeat(100)}--`, null],
    ['-', null],
    ['', null],
  ])('in %j is %j, wherever it is cut', (text, model) => {
    const body = Buffer.from(text);
    for (const size of [1, 2, 3, 5, 50, Infinity]) expect(scan(body, [size]).model).toBe(model);
  });

  it('is found after any file, in chunks of any size', () => {
    const pieces = fc
      .array(fc.constantFrom('\r', '\n', '-', '\r\n', '\r\n-', '\r\n--', '\r\n--b', 'x'), { maxLength: 40 })
      .map((all) => all.join(''));
    const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 6 });
    check(
      fc.property(pieces, sizes, (file, sizes) => {
        const body = `--boundary\r\n${FILE}${file}\r\n--boundary\r\n${part('model', 'm')}\r\n--boundary--\r\n`;
        fc.pre(!file.includes('--boundary'));
        expect(scan(Buffer.from(body), sizes).model).toBe('m');
      }),
    );
  });

  it('keeps neither a large file nor an endless head', () => {
    const body = Buffer.concat([Buffer.from(`--b\r\n${FILE}`), randomBytes(4_000_000)]);
    const inFile = scan(body, [65_536]);
    expect(inFile.done).toBe(false);
    const head = scan(Buffer.from(`--b\r\nx: ${'y'.repeat(100_000)}`), [1_000]);
    expect(head.done).toBe(true);
    for (const { kept } of [inFile, head] as unknown as { kept: Buffer }[])
      expect(kept.length).toBeLessThan(8_192);
  });
});
