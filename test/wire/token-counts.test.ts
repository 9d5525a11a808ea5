import { randomBytes } from 'node:crypto';
import zlib from 'node:zlib';
import { inflationMemory } from '../../src/bodies/usage/inflation.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { request, type ReceivedResponse } from '../support/raw-client.js';
import { answer, chunk, STREAM_HEAD } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

const CHAT = 'POST /v1/chat/completions';
const GZIP = ['Content-Type: application/json', 'Content-Encoding: gzip'];

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

const rowOf = (reply: Omit<ReceivedResponse, 'body'>) =>
  wire.gateway.row(reply.header('x-gateway-request-id')!);

/** Answers each request with this. */
function respond(status: string, headers: string[], body: string | Buffer): void {
  wire.provider.script = async ({ body: received, socket }) => {
    await received;
    socket.write(answer(status, headers, body));
  };
}

describe('the model named in a path', () => {
  const contents = '{"contents":[{"parts":[{"text":"Hi"}]}]}';
  const metadata = '{"modelVersion":"gemini-2.5-flash-preview-05-20","usageMetadata":{"promptTokenCount":8}}';

  never.each<[string, string, string, string, string]>([
    ['generateContent', '200 OK', metadata, contents, 'gemini-2.5-flash'],
    ['generateContent', '429 Too Many Requests', '{"error":{"code":429}}', contents, 'gemini-2.5-flash'],
    ['embedContent', '200 OK', '{"embedding":{"values":[0.5]}}', contents, 'gemini-2.5-flash'],
    ['countTokens', '200 OK', '{"totalTokens":8}', contents, 'gemini-2.5-flash'],
    ['generateContent', '200 OK', metadata, '', 'gemini-2.5-flash'],
    // Clients send one in the body as well, which the provider ignores.
    ['rawPredict', '200 OK', '{}', '{"model":"claude-sonnet-4-5"}', 'gemini-2.5-flash'],
    ['embedContent', '200 OK', '{}', '{"model":"models/gemini-2.5-flash"}', 'gemini-2.5-flash'],
    [
      'generateContent',
      '200 OK',
      metadata,
      `{"model":"m","contents":["${'A'.repeat(300_000)}"]}`,
      'gemini-2.5-flash',
    ],
  ])('is in the row of a %s answered %s %s', async (method, status, body, sent, model) => {
    respond(status, ['Content-Type: application/json'], body);
    const target = `/p/default/v1beta/models/gemini-2.5-flash:${method}`;
    const reply = await wire.call(`POST ${target}`, [], sent);
    expect(reply.body.toString()).toBe(body);
    expect(await rowOf(reply)).toMatchObject({ model, status: Number(status.slice(0, 3)), path: target });
  });

  it('is in the row if the URL of the provider names it', async () => {
    respond('200 OK', ['Content-Type: application/json'], '{}');
    const url = `${wire.provider.url}/openai/deployments/my-gpt`;
    await wire.gateway.admin('POST', '/providers', { name: 'deployed', url, secret: 's' });
    const reply = await wire.call('POST /p/deployed/chat/completions', [], '{"model":"gpt-4o"}');
    expect(await rowOf(reply)).toMatchObject({ model: 'my-gpt' });
  });
});

describe('the model named in a body', () => {
  const filler = (bytes: number) => `"messages":["${'A'.repeat(bytes)}",[${'1234,'.repeat(20)}5]]`;

  never.each([
    ['read whole', 1_000],
    ['streamed', 300_000],
  ])(
    'twice is the last one in the row, as most providers read it, of a body that is %s',
    async (_, bytes) => {
      respond('200 OK', ['Content-Type: application/json'], '{"model":"of-response"}');
      const reply = await wire.call(CHAT, [], `{"model":"cheap",${filler(bytes)},"model":"dear"}`);
      expect(await rowOf(reply)).toMatchObject({ model: 'dear' });
    },
  );
});

describe('token counts of compressed responses', () => {
  const usage = { prompt_tokens: 512, completion_tokens: 7 };

  it('are in the row of 5 MB of gzip, which passes byte for byte', async () => {
    const text = randomBytes(5_000_000).toString('base64');
    const body = zlib.gzipSync(JSON.stringify({ model: 'm', text, usage }), { level: 1 });
    respond('200 OK', GZIP, body);
    const reply = await wire.call(CHAT, [], '{}');
    expect(reply.body.equals(body)).toBe(true);
    expect(await rowOf(reply)).toMatchObject({ ...usage, model: 'm', outcome: 'completed' });
    expect(inflationMemory()).toBe(0);
  });

  it('are null where the client leaves in the middle, and nothing is left open', async () => {
    const body = zlib.gzipSync(
      JSON.stringify({ model: 'm', text: randomBytes(400_000).toString('base64'), usage }),
    );
    wire.provider.script = async ({ body: received, socket }) => {
      await received;
      socket.write(STREAM_HEAD.replace('text/event-stream', 'application/json\r\nContent-Encoding: gzip'));
      socket.write(chunk(body.subarray(0, 300_000)));
    };
    const client = await wire.connect();
    client.send(request(CHAT, [wire.auth], '{}'));
    const head = await client.head();
    await eventually(() => inflationMemory() > 0);
    client.destroy();
    expect(await rowOf(head)).toMatchObject({ outcome: 'client_aborted', model: 'm', prompt_tokens: null });
    await eventually(() => inflationMemory() === 0);
  });
});
