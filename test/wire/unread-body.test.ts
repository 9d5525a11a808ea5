import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start({ MAX_BODY_BYTES: '1000' });
});
afterAll(() => wire.stop());

const inner = () => request('GET /v1/models?smuggled', [wire.auth]).toString('latin1');

/** Refusals that leave the framing of the connection intact; KEY is a good one. */
const REFUSED: [status: number, code: string, line: string, headers: string[]][] = [
  [400, 'invalid_path', 'POST /v1/../admin', ['Authorization: Bearer KEY']],
  [400, 'credential_in_query', 'POST /v1/files?access_token=x', ['Authorization: Bearer KEY']],
  [401, 'invalid_api_key', 'POST /v1/chat/completions', []],
  [403, 'endpoint_not_allowed', 'POST /v1/files', ['Authorization: Bearer KEY']],
  [404, 'provider_not_found', 'POST /p/x/v1/chat/completions', ['Authorization: Bearer KEY']],
  [404, 'not_found', 'POST /elsewhere', ['Authorization: Bearer KEY']],
  [405, 'method_not_allowed', 'TRACE /v1/models', ['Authorization: Bearer KEY']],
];

it.each(REFUSED)(
  'a request inside the body of a %i %s is never taken for one',
  async (status, code, line, headers) => {
    // An inference key, so that 403 is among them; 404 for a provider needs `all`.
    const key = code === 'provider_not_found' ? wire.auth.slice(22) : wire.gateway.key;
    const sent = headers.map((header) => header.replace('KEY', key));
    const body = inner();
    for (const framing of ['length', 'chunked', 'late']) {
      const client = await wire.connect();
      if (framing === 'length') client.send(request(line, sent, body));
      else if (framing === 'chunked') {
        const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
        client.send(request(line, [...sent, 'Transfer-Encoding: chunked'], chunk));
      } else client.send(request(line, [...sent, `Content-Length: ${body.length}`]));
      wire.expectRefusal(await client.answer(), status, code);
      if (framing === 'late') client.send(body);
      // The connection is in step: the next thing on it is the next request.
      client.send(request('POST /v1/chat/completions?next', [`Authorization: Bearer ${key}`], 'next'));
      const next = await client.answer();
      expect([next.status, next.header('x-target')]).toEqual([200, '/v1/chat/completions?next']);
      expect(client.reader.rest).toHaveLength(0);
      client.destroy();
      await wire.expectSound(1);
    }
  },
);

it('a request inside a body that is too large is never taken for one', async () => {
  const client = await wire.connect();
  client.send(request('POST /v1/chat/completions', [wire.auth, 'Content-Length: 5000']));
  wire.expectRefusal(await client.answer(), 413, 'request_too_large');
  client.send(inner());
  client.send('x'.repeat(5_000 - inner().length));
  client.send(request('POST /v1/chat/completions?next', [wire.auth], 'next'));
  expect((await client.answer()).header('x-target')).toBe('/v1/chat/completions?next');
  expect(client.reader.rest).toHaveLength(0);
  client.destroy();
  await wire.expectSound(1);
});
