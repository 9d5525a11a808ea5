import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fences, read } from '../docs/pages.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawProvider, answer } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { LONG_MS, newSecret } from './filter.js';

// The receiver of the guide, with the package that it names.

const run = promisify(execFile);
const CARD = '4111 1111 1111 1111';

let folder: string;
let filter: ChildProcess;
let url: string;
let provider: RawProvider;
let postern: TestGateway;
const secret = newSecret();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-presidio-'));
  await run('python3', ['-m', 'venv', folder]);
  await run(join(folder, 'bin/pip'), ['install', '--quiet', 'presidio-analyzer==2.2.366']);
  const [script] = fences(read('docs/guides/policies.md')).filter(({ language }) => language === 'python');
  await writeFile(join(folder, 'filter.py'), script!.code);
  const port = await unusedPort();
  url = `http://127.0.0.1:${port}/`;
  filter = spawn(join(folder, 'bin/python'), [join(folder, 'filter.py')], {
    env: { POLICY_SECRET: secret, PORT: String(port), HOME: folder },
    stdio: 'inherit',
  });
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', ['Content-Type: application/json'], '{"model":"m"}'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  // It listens once it has loaded its packages.
  await eventually(() =>
    fetch(url, { method: 'POST' }).then(
      ({ status }) => status === 401,
      () => false,
    ),
  );
  const policy = { name: 'dlp', url, secret, send: 'body', timeout_ms: LONG_MS };
  await postern.admin('POST', '/policies', policy);
}, 900_000);
afterAll(async () => {
  await postern.stop();
  await provider.stop();
  filter.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

const send = (body: string) =>
  fetch(`${postern.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${postern.key}`, 'content-type': 'application/json' },
    body,
  });

const message = (content: string) => JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] });

it('forwards what Presidio finds nothing in, and tags its row', async () => {
  const response = await send(message('What is 4111 plus 1111?'));
  expect(response.status).toBe(200);
  const row = await postern.row(response.headers.get('x-gateway-request-id')!);
  expect(row.tags).toEqual({ pii: 'none' });
});

it.each([
  ['a card number', message(`My card is ${CARD}.`), 'pii_found', 'CREDIT_CARD'],
  ['an IBAN', message('Pay to DE89 3704 0044 0532 0130 00.'), 'pii_found', 'IBAN_CODE'],
  ['an escaped card number', message(CARD).replace('4111', '\\u0034111'), 'pii_found', 'CREDIT_CARD'],
  ['one of two members', `{"model":"m","a":"${CARD}","a":"b"}`, 'pii_found', 'CREDIT_CARD'],
  ['what is no JSON', 'model=m', 'unreadable', 'JSON'],
])('rejects %s', async (_, body, code, text) => {
  const response = await send(body);
  expect(response.status).toBe(403);
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  expect(error).toMatchObject({ code, message: expect.stringContaining(text) as string });
});

it('rejects a signature of another secret', async () => {
  const other = { name: 'other', url, secret: newSecret(), timeout_ms: LONG_MS, enabled: false };
  await postern.admin('POST', '/policies', other);
  const tested = await postern.admin('POST', '/policies/other/test', { model: 'm' });
  expect(tested).toMatchObject({ ok: false, code: 'unexpected_status' });
  expect(await postern.admin('POST', '/policies/dlp/test', { body: message(CARD) })).toMatchObject({
    ok: true,
    decision: { allow: false, code: 'pii_found' },
  });
});
