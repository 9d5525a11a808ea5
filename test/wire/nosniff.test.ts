import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { RawClient } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';

let provider: RawProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'ok')));
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

const ADMIN = `Authorization: Bearer ${ADMIN_TOKEN}`;

/** Values of the header in the response. */
async function sent(target: string, header: string): Promise<string[]> {
  const client = await RawClient.connect(postern.port);
  client.send(`GET ${target} HTTP/1.1\r\nHost: x\r\n${header}\r\nAccept: text/html\r\n\r\n`);
  const { headers } = await client.answer();
  client.destroy();
  return headers
    .filter(([name]) => name.toLowerCase() === 'x-content-type-options')
    .map(([, value]) => value);
}

never.each([
  ['/', ''],
  ['/health/live', ''],
  ['/health/ready', ''],
  ['/metrics', ADMIN],
  ['/console', ''],
  ['/docs', ''],
  ['/docs-json', ''],
  ['/admin/v1/teams', ADMIN],
  ['/admin/v1/teams', ''],
  ['/admin/v1/nothing', ADMIN],
  ['/admin/v1/requests/export?format=csv', ADMIN],
  ['/admin/v1/requests/export?format=ndjson', ADMIN],
  ['/self/v1/key', ''],
  ['/nothing', ''],
  ['/v1/models', ''],
  ['/../v1/models', ''],
  ['/%zz bad', ''],
])(
  'what the gateway itself serves at %s %s has a type that browsers do not guess',
  async (target, header) => {
    expect(await sent(target, header === '' ? 'X: y' : header)).toEqual(['nosniff']);
  },
);

it('the response of a provider is forwarded without it', async () => {
  expect(await sent('/v1/models', `Authorization: Bearer ${postern.key}`)).toEqual([]);
});
