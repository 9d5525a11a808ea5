import { request } from '../support/raw-client.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
let key: string;

beforeAll(async () => {
  wire = await Wire.start();
  key = wire.gateway.key;
});
afterAll(() => wire.stop());

const line = 'POST /v1/chat/completions';

it.each([
  ['good and bad', () => [`Authorization: Bearer ${key}`, 'Authorization: Bearer x']],
  ['bad and good', () => ['Authorization: Bearer x', `Authorization: Bearer ${key}`]],
  ['twice the same, in other cases', () => [`AUTHORIZATION: Bearer ${key}`, `authorization: Bearer ${key}`]],
  ['good and empty', () => [`Authorization: Bearer ${key}`, 'Authorization:']],
  ['good and Basic', () => [`Authorization: Bearer ${key}`, 'Authorization: Basic eDp5']],
])('refuses two Authorization lines with 400 and closes: %s', async (_, headers) => {
  const client = await wire.connect();
  client.send(request(line, headers(), '{}'));
  wire.expectRefusal(await client.answer(), 400, 'invalid_request');
  await client.closed;
  await wire.expectSound(0);
});

it.each([
  ['none', () => []],
  ['a list', () => [`Authorization: Bearer ${key}, Bearer ${key}`]],
  ['a tab for the space', () => [`Authorization: Bearer\t${key}`]],
  ['no scheme', () => [`Authorization: ${key}`]],
  ['no space', () => [`Authorization: Bearer${key}`]],
  ['quotes', () => [`Authorization: Bearer "${key}"`]],
  ['8 KB', () => [`Authorization: Bearer ${key}${'x'.repeat(8_192)}`]],
  ['bytes outside ASCII', () => [`Authorization: Bearer ${key.slice(0, -1)}\xe9`]],
  ['another case of the key', () => [`Authorization: Bearer ${key.toUpperCase()}`]],
  ['a cookie', () => [`Cookie: authorization=Bearer ${key}; access_token=${key}`]],
  ['only Proxy-Authorization', () => [`Proxy-Authorization: Bearer ${key}`]],
])('answers 401 and keeps the connection: %s', async (_, headers) => {
  const client = await wire.connect();
  client.send(request(line, headers(), `{"access_token":"${key}"}`));
  wire.expectRefusal(await client.answer(), 401, 'invalid_api_key');
  client.send(request(line, [`Authorization: Bearer ${key}`], '{}'));
  expect((await client.answer()).status).toBe(200);
  client.destroy();
  await wire.expectSound(1);
});
