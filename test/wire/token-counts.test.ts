import { randomBytes } from 'node:crypto';
import zlib from 'node:zlib';
import { setImmediate as turn } from 'node:timers/promises';
import { inflationMemory } from '../../src/bodies/usage/inflation.js';
import { eventually } from '../support/eventually.js';
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

  it.each<[string, string, string, string, string]>([
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

  it.each([
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

/** Processor time in ms of each kind of calls and their rows: the least of many tries, by turns. */
async function costs(...kinds: (() => Promise<ReceivedResponse>)[]): Promise<number[]> {
  const least = kinds.map(() => Infinity);
  for (let i = 0; i < 12; i++)
    for (const [kind, calls] of kinds.entries()) {
      const before = process.cpuUsage();
      await rowOf(await calls());
      await turn();
      const { user, system } = process.cpuUsage(before);
      least[kind] = Math.min(least[kind]!, (user + system) / 1_000);
    }
  return least;
}

/*
 * Client, gateway and provider share this process: what the gateway spends on a call, it spends on the event loop that
 * serves everybody else. It is compared with what the same number of plain bytes costs, so that a busy machine counts
 * for both.
 */
describe('a call that is hostile to those who read it', () => {
  const repeated = (member: string, bytes: number) =>
    `{${member.repeat(Math.floor(bytes / member.length))}"z":1}`;

  it.each(['"\\x":0,', '"\\u":0,', '"\\/":0,'])(
    'costs others no more than a plain one: a request of %s',
    async (member) => {
      respond('200 OK', ['Content-Type: application/json'], '{}');
      const hostile = repeated(member, 261_000);
      const plain = hostile.replaceAll('\\', 'x');
      const times = async (body: string) => {
        for (let i = 0; i < 4; i++) await wire.call(CHAT, [], body);
        return wire.call(CHAT, [], body);
      };
      await times(plain);
      const [plainCost, hostileCost] = await costs(
        () => times(plain),
        () => times(hostile),
      );
      expect(hostileCost).toBeLessThan(5 * plainCost!);
    },
  );

  const SSE = 'Content-Type: text/event-stream';
  const event = (bytes: number) => `data: {"usage":{"x":1},${repeated('"\\x":0,', bytes).slice(1)}\n\n`;
  const gzip = (body: string | Buffer) => zlib.gzipSync(body, { level: 9 });

  it.each<[string, string[], Buffer]>([
    [
      'events in gzip three times',
      [SSE, 'Content-Encoding: gzip, gzip, gzip'],
      gzip(gzip(gzip(event(1_048_000)))),
    ],
    ['events in gzip', [SSE, 'Content-Encoding: gzip'], gzip(event(1_048_000))],
    ['events', [SSE], Buffer.from(event(127_000))],
    ['JSON in gzip', GZIP, gzip(repeated('"\\x":0,', 1_048_000))],
    ['JSON of usages that are none', GZIP, gzip(repeated('"usage":{x},', 1_048_000))],
    ['line ends', [SSE, 'Content-Encoding: gzip'], gzip('\r'.repeat(1_048_000))],
  ])('costs others no more than a plain one: a response of %s', async (_name, headers, body) => {
    const calls = async (bytes: Buffer) => {
      respond('200 OK', headers, bytes);
      return wire.call(CHAT, [], '{}');
    };
    const plain = Buffer.alloc(body.length, 'x');
    await calls(plain);
    const [plainCost, hostileCost] = await costs(
      () => calls(plain),
      () => calls(body),
    );
    expect(hostileCost).toBeLessThan(5 * plainCost!);
  });
});
