import { randomBytes, randomInt } from 'node:crypto';
import { generateKey } from '../../src/keys/key-secret.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { FULL } from '../support/scale.js';
import { Scrape } from './scrape.js';

const REQUESTS = FULL ? 10_000 : 600;
const CONNECTIONS = 8;

let provider: RawProvider;
let postern: TestGateway;
let key: string;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], `{"model":"${word()}"}`));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  key = await postern.createKey({ endpoints: 'all' });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

const word = () => `canary${randomBytes(6).toString('hex')}`;
const oneOf = <T>(...choices: T[]) => choices[randomInt(choices.length)]!;

/** Anything a client may make up: path, provider, method, model, key. */
function anyRequest(): Buffer {
  const path = oneOf(
    `/v1/${word()}`,
    `/p/${word()}/v1/models`,
    `/p/default/${word()}?${word()}`,
    `/${word()}`,
  );
  const method = oneOf('POST', 'GET', 'PUT', 'PROPFIND', 'DELETE');
  const sent = oneOf(`Bearer ${generateKey()}`, `Bearer ${word()}`, word(), `Bearer ${key}`, `Bearer ${key}`);
  const headers = [`Authorization: ${sent}`, `User-Agent: ${word()}`, `X-${word()}: ${word()}`];
  return request(`${method} ${path}`, headers, JSON.stringify({ model: word() }));
}

async function send(count: number): Promise<void> {
  let client: RawClient | null = null;
  for (let i = 0; i < count; i++) {
    if (client === null || client.socket.destroyed) client = await RawClient.connect(postern.port);
    client.send(anyRequest());
    await client.answer();
  }
  client?.destroy();
}

const settled = () =>
  eventually(async () => {
    const seen = await Scrape.of(postern.url);
    // Costs are counted once the first rows are priced.
    const [enqueued, persisted] = ['enqueued', 'persisted'].map((state) =>
      seen.sum(`postern_log_rows_${state}_total`),
    );
    return seen.sum('postern_open_calls') === 0 && persisted === enqueued && seen;
  });

it(`has no series more after ${REQUESTS} requests that each name something new`, async () => {
  // Every outcome and code that what follows can have, once.
  await send(300);
  const before = await settled();
  await Promise.all(Array.from({ length: CONNECTIONS }, () => send(REQUESTS / CONNECTIONS)));
  const seen = await settled();
  // A fifth is forwarded, give or take chance.
  expect(seen.sum('postern_calls_total')).toBeGreaterThan(before.sum('postern_calls_total') + REQUESTS / 10);
  expect(seen.own).toEqual(before.own);
  // A module of one's own decides about the labels of its own metrics.
  expect(seen.own.join('\n')).not.toContain('canary');
  expect(seen.text).not.toContain('ptn_');
});
