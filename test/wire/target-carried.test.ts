import { startTestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;

beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());

/** Targets that are odd but safe: the provider gets each byte for byte. */
it.each([
  '/v1/',
  '/v1//',
  '/v1//models//x/',
  '/v1/models/',
  '/v1/MODELS',
  '/v1/models/meta-llama%2FLlama-3.3-70B',
  '/v1/models/org%2fmodel%2Fname',
  '/v1/models/a%5Cb',
  '/v1/models/ft:gpt-4o:org::id',
  '/v1/models/...',
  '/v1/models/..x',
  '/v1/models/x..',
  '/v1/models/.hidden',
  '/v1/models/v1.5/..5',
  '/v1/models/a;b=c',
  '/v1/models/%e4%BD%A0',
  '/v1/models/%ff%FE',
  '/v1/models/%20%23%3F%25',
  '/v1/models/%252F',
  '/v1/models/%25%32%35',
  '/v1/models/user@host:80',
  "/v1/models/!$&'()*+,=~_-",
  '/v1/models/"<>^`{|}[]',
  '/v1/models?',
  '/v1/models??',
  '/v1/models?a=b&a=c&&=',
  '/v1/models?path=/../../etc/passwd',
  '/v1/models?path=%2e%2e%2f',
  '/v1/models?malformed=%zz&half=%4&end=%',
  '/v1/models?nul=%00&line=%0d%0a',
  '/v1/models?url=http://evil.test//x',
  '/v1/models?{"a":[1]}|^`',
  '/v1/models?a+b=c%20d',
])('carries %s byte for byte', async (target) => {
  const [reply] = await wire.send(request(`GET ${target}`, [wire.auth]));
  expect([reply!.status, reply!.header('x-target')]).toEqual([200, target]);
  await wire.expectSound(1);
});

it.each(['/base', '/base/path', '/a%2Fb'])('keeps the path of a provider at %s before it', async (base) => {
  const { url } = wire.provider;
  const based = await startTestGateway({ PROVIDER_URL: `${url}${base}` });
  const client = await RawClient.connect(based.port);
  client.send(request('GET /v1/models?a=b', [`Authorization: Bearer ${based.key}`]));
  expect((await client.answer()).header('x-target')).toBe(`${base}/v1/models?a=b`);
  client.destroy();
  await based.stop();
  await wire.expectSound(1);
});
