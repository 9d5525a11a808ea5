import { randomBytes } from 'node:crypto';
import { never } from '../support/never.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** A file, then the model, as `FormData` sends them in the order in which they were added. */
function transcription(file: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from('--X\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'),
    file,
    Buffer.from('\r\n--X\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--X--\r\n'),
  ]);
}

never.each<[string, number]>([
  ['is buffered', 1_000],
  ['is streamed', 2_000_000],
])('the row names the model of a multipart body that %s, and the body passes unchanged', async (_, size) => {
  const body = transcription(randomBytes(size));
  const headers = ['Content-Type: multipart/form-data; boundary=X'];
  const reply = await wire.call('POST /v1/audio/transcriptions', headers, body);
  expect(reply.status).toBe(200);
  expect(reply.body.equals(body)).toBe(true);
  const row = await wire.gateway.row(reply.header('x-gateway-request-id')!);
  expect(row).toMatchObject({ model: 'whisper-1', path: '/v1/audio/transcriptions' });
});
