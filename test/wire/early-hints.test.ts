import { PROVIDER_KEY } from '../support/gateway.js';
import { request } from '../support/raw-client.js';
import { answer } from '../support/raw-provider.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** Everything a client is sent before the final head when the provider sends these interim answers. */
async function heads(interim: string, version = '1.1'): Promise<string[]> {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write(Buffer.concat([Buffer.from(interim, 'latin1'), answer('200 OK', [], 'ok')]));
  };
  const client = await wire.connect();
  client.send(
    Buffer.from(
      request('POST /v1/chat/completions', [wire.auth], '{}')
        .toString('latin1')
        .replace('HTTP/1.1', `HTTP/${version}`),
    ),
  );
  const seen: string[] = [];
  for (;;) {
    const head = await client.reader.head();
    if (!/^HTTP\/1\.1 1/.test(head)) break;
    seen.push(head);
  }
  client.destroy();
  await wire.expectSound(1);
  return seen;
}

it('passes 103 on with its Link headers and nothing else', async () => {
  const links = 'Link: </a.css>; rel=preload\r\nlink: </b\xe9>; rel=x';
  expect(
    await heads(`HTTP/1.1 103 Early Hints\r\n${links}\r\nX-Other: 1\r\nSet-Cookie: a=b\r\n\r\n`),
  ).toEqual([`HTTP/1.1 103 Early Hints\r\n${links}`]);
});

it('passes on each of several, in order', async () => {
  const hint = (n: number) => `HTTP/1.1 103 Early Hints\r\nLink: </${n}>\r\n\r\n`;
  expect(await heads(hint(1) + 'HTTP/1.1 102 Processing\r\n\r\n' + hint(2))).toEqual([
    'HTTP/1.1 103 Early Hints\r\nLink: </1>',
    'HTTP/1.1 103 Early Hints\r\nLink: </2>',
  ]);
});

it.each([
  ['103 without Link', 'HTTP/1.1 103 Early Hints\r\nX-Other: 1\r\n\r\n'],
  ['103 whose Link holds the secret', `HTTP/1.1 103 Early Hints\r\nLink: <${PROVIDER_KEY}>\r\n\r\n`],
  ['102', 'HTTP/1.1 102 Processing\r\nLink: </a>\r\n\r\n'],
  ['199', 'HTTP/1.1 199 Odd\r\nLink: </a>\r\n\r\n'],
])('drops %s', async (_, interim) => {
  expect(await heads(interim)).toEqual([]);
});

it('sends no 103 to an HTTP/1.0 client (RFC 9110 15.2)', async () => {
  expect(await heads('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', '1.0')).toEqual([]);
});

it('answers 502 to a 100 that nobody asked for', async () => {
  wire.provider.script = async (req) => {
    await req.body;
    req.socket.write('HTTP/1.1 100 Continue\r\n\r\n');
    req.socket.write(answer('200 OK', [], 'ok'));
  };
  wire.expectRefusal(
    await wire.call('POST /v1/chat/completions', [], '{}'),
    502,
    'upstream_invalid_response',
  );
  await wire.expectSound(1);
});
