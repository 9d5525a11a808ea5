import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { ConsoleFiles } from '../../src/console/console-files.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';
import { unusedPort } from '../support/unused-port.js';

const SCRIPT = `console.log(${'1 + '.repeat(500)}1);`;
const PAGE = '<!doctype html><title>Postern</title>';
const BROWSER = 'Accept: text/html,application/xhtml+xml,*/*;q=0.8';

let folder: string;
let postern: TestGateway;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-console-'));
  postern = await startTestGateway();
  postern.gateway.app.get(ConsoleFiles).folder = folder;
});
afterAll(async () => {
  await postern.stop();
  rmSync(folder, { recursive: true });
});

function write(name: string, content: string | Buffer): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), content);
}

function build(): void {
  write('dist/assets/index-A1b2.js', SCRIPT);
  write('dist/assets/index-A1b2.js.gz', gzipSync(SCRIPT));
  write('dist/assets/index-A1b2.js.br', brotliCompressSync(SCRIPT));
  write('dist/favicon.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>');
  write('dist/index.html', PAGE);
  write('dist/index.html.gz', gzipSync(PAGE));
  write('dist/.postern-build', 'hidden');
  write('secret.txt', 'secret');
}

async function get(path: string, headers: string[] = [], method = 'GET'): Promise<ReceivedResponse> {
  const client = await RawClient.connect(postern.port);
  client.send(request(`${method} ${path}`, [...headers, 'Connection: close']));
  const answer = await client.answer({ bodyless: method === 'HEAD' });
  client.destroy();
  return answer;
}

const unbuild = () => rmSync(join(folder, 'dist'), { recursive: true, force: true });

describe('before the console is built', () => {
  beforeEach(unbuild);

  it.each([
    ['is not built', null],
    ['is being installed', { state: 'installing', pid: process.pid }],
    ['is being built', { state: 'building', pid: process.pid }],
    ['could not be built', { state: 'failed', pid: 1 }],
  ])('a page says that it %s, and reloads itself', async (text, status) => {
    if (status !== null) write('.build-status', JSON.stringify(status));
    const answer = await get('/console', [BROWSER]);
    expect([answer.status, answer.header('cache-control')]).toEqual([503, 'no-store']);
    expect(answer.header('retry-after')).toBe('2');
    const html = answer.body.toString();
    expect(html).toContain(`The console ${text}`);
    expect(html).toContain('<meta http-equiv="refresh" content="2">');
    rmSync(join(folder, '.build-status'), { force: true });
  });

  it('does not believe the status of a build that is gone', async () => {
    write('.build-status', JSON.stringify({ state: 'building', pid: 2 ** 22 + 1 }));
    expect((await get('/console')).body.toString()).toContain('The console is not built');
    rmSync(join(folder, '.build-status'));
  });

  it('is served as soon as it is built, without a restart', async () => {
    expect((await get('/console')).status).toBe(503);
    build();
    expect((await get('/console')).body.toString()).toBe(PAGE);
  });
});

describe('the built console', () => {
  beforeAll(build);

  it.each([
    '/console',
    '/console/',
    '/console/requests',
    '/console/keys/01890a5d?tab=usage',
    '/console/a/b/c.d',
  ])('%s is its page, which a browser asks for again each time', async (path) => {
    const answer = await get(path, [BROWSER]);
    expect([answer.status, answer.body.toString()]).toEqual([200, PAGE]);
    expect(answer.header('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.header('cache-control')).toBe('no-cache');
  });

  it('answers a browser that has the page already with 304', async () => {
    const first = await get('/console');
    const again = await get('/console', [`If-Modified-Since: ${first.header('last-modified')!}`]);
    expect(again.status).toBe(304);
  });

  it('has assets that never change under their names', async () => {
    const answer = await get('/console/assets/index-A1b2.js');
    expect([answer.status, answer.body.toString()]).toEqual([200, SCRIPT]);
    expect(answer.header('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(answer.header('content-type')).toBe('text/javascript; charset=utf-8');
    expect((await get('/console/favicon.svg')).header('content-type')).toBe('image/svg+xml');
  });

  it.each([
    ['gzip, deflate, br, zstd', 'br', brotliCompressSync(SCRIPT)],
    ['gzip', 'gzip', gzipSync(SCRIPT)],
    ['identity', undefined, Buffer.from(SCRIPT)],
    ['br;q=0', undefined, Buffer.from(SCRIPT)],
  ])('sends them as they were compressed, for Accept-Encoding %s', async (accepted, encoding, bytes) => {
    const answer = await get('/console/assets/index-A1b2.js', [`Accept-Encoding: ${accepted}`]);
    expect([answer.header('content-encoding'), answer.header('vary')]).toEqual([encoding, 'accept-encoding']);
    expect(answer.body.equals(bytes)).toBe(true);
    expect(answer.header('content-type')).toBe('text/javascript; charset=utf-8');
  });

  it.each([
    '/console/assets/missing.js',
    '/console/assets/',
    '/console/assets/../index.html',
    '/console/assets/%2e%2e/%2e%2e/secret.txt',
    '/consoles',
    '/Console',
  ])('%s is not found', async (path) => {
    expect([404, 400]).toContain((await get(path)).status);
  });

  it.each([
    '/console/../secret.txt',
    '/console/%2e%2e/secret.txt',
    '/console/.postern-build',
    '/console/..%2fsecret.txt',
  ])('%s leads to no file outside and to no hidden one', async (path) => {
    expect((await get(path)).body.toString()).not.toMatch(/secret|hidden/);
  });

  it('has a head, and no other method', async () => {
    expect(await get('/console', [], 'HEAD')).toMatchObject({ status: 200 });
    expect((await get('/console', [], 'POST')).status).toBe(404);
  });

  it('can be framed by no page, and loads nothing from elsewhere', async () => {
    for (const path of ['/console', '/console/assets/index-A1b2.js']) {
      const answer = await get(path);
      expect(answer.header('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
          "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      );
      expect(answer.header('referrer-policy')).toBe('no-referrer');
      expect(answer.header('x-frame-options')).toBe('DENY');
      expect(answer.header('x-content-type-options')).toBe('nosniff');
    }
  });

  it('is where / leads a browser, and only a browser', async () => {
    const browser = await get('/', [BROWSER]);
    expect([browser.status, browser.header('location'), browser.header('vary')]).toEqual([
      302,
      '/console',
      'accept',
    ]);
    expect((await get('/', ['Accept: application/json'])).status).toBe(404);
  });
});

it('CONSOLE=off serves none', async () => {
  const without = await startTestGateway({ CONSOLE: 'off' }, postern.database);
  without.gateway.app.get(ConsoleFiles).folder = folder;
  const headers = { accept: 'text/html' };
  expect((await fetch(`${without.url}/console`, { headers })).status).toBe(404);
  expect(await (await fetch(without.url, { headers })).text()).toContain('Postern is running');
  await without.stop();
});

it('with ADMIN_PORT, it is on that port only', async () => {
  const apart = await startTestGateway({ ADMIN_PORT: String(await unusedPort()) }, postern.database);
  apart.gateway.app.get(ConsoleFiles).folder = folder;
  const authorization = `Bearer ${ADMIN_TOKEN}`;
  for (const path of ['/console', '/console/keys', '/console?x']) {
    expect((await fetch(apart.url + path, { headers: { authorization } })).status).toBe(404);
    expect((await fetch(apart.gateway.adminUrl! + path)).status).toBe(200);
  }
  const headers = { accept: 'text/html' };
  const there = await fetch(apart.gateway.adminUrl!, { headers, redirect: 'manual' });
  expect(there.headers.get('location')).toBe('/console');
  expect(await (await fetch(apart.url, { headers })).text()).toContain('Postern is running');
  await apart.stop();
});
