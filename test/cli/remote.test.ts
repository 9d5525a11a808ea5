import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import type { Ran } from './run-cli.js';
import { runHere } from './run-here.js';

let gateway: TestGateway;
let folder: string;
beforeAll(async () => {
  gateway = await startTestGateway();
  folder = await mkdtemp(join(tmpdir(), 'postern-cli-'));
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true });
});

const remote = (...args: string[]): Promise<Ran> =>
  runHere(args, { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });

/** Who made the last change, and from where. */
async function lastActor(): Promise<object> {
  const rows = await gateway.database.query(
    'SELECT actor, client_ip FROM audit_log ORDER BY id DESC LIMIT 1',
  );
  return rows[0]!;
}

describe('postern with the URL of a gateway', () => {
  it('does everything over HTTP, with a token from the environment or a file and no other setting', async () => {
    const made = await runHere(['teams', 'create', 'far', '--url', `${gateway.url}/`], {
      POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
    });
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(await lastActor()).toEqual({ actor: 'admin-token', client_ip: '127.0.0.1' });
    const file = join(folder, 'token');
    await writeFile(file, `${ADMIN_TOKEN}\n`);
    // The settings of a gateway would be wrong here; they are not read.
    const env = {
      POSTERN_URL: gateway.url,
      POSTERN_ADMIN_TOKEN_FILE: file,
      NODE_ENV: 'production',
      PORT: 'x',
    };
    const { code, stdout } = await runHere(['--url', `${gateway.url}/v1`, 'teams', 'list', '--json'], env);
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { data: [{ name: 'far' }, { name: 'default' }] }]);
    expect((await runHere(['teams', 'list'], env)).stdout).toContain('far');
  });

  it('reads .env, and prefers --url to POSTERN_URL', async () => {
    await writeFile(
      join(folder, '.env'),
      `POSTERN_URL=http://127.0.0.1:9\nPOSTERN_ADMIN_TOKEN=${ADMIN_TOKEN}\n`,
    );
    expect(await runHere(['teams', 'list'], {}, folder)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^error: the gateway at http:\/\/127\.0\.0\.1:9 cannot be reached: /,
      ) as string,
    });
    for (const args of [
      ['--url', gateway.url, 'teams', 'list'],
      ['teams', '--url', gateway.url, 'list'],
      ['teams', 'list', '--url', gateway.url],
    ])
      expect(await runHere(args, {}, folder)).toMatchObject({ code: 0, stderr: '' });
    await rm(join(folder, '.env'));
  });

  it('takes --url of a command that has its own for that one', async () => {
    const args = ['add', 'mine', '--no-secret', '--url', 'https://mine.example'];
    expect(await remote('providers', ...args)).toMatchObject({ code: 0, stderr: '' });
    expect(await gateway.admin('GET', '/providers/mine')).toMatchObject({ url: 'https://mine.example' });
    const env = { POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
    const change = ['providers', 'update', 'mine', '--url', 'https://other.example'];
    expect(await runHere(['--url', gateway.url, ...change], env)).toMatchObject({ code: 0, stderr: '' });
    expect(await gateway.admin('GET', '/providers/mine')).toMatchObject({ url: 'https://other.example' });
  });

  it.each([
    [{}, 'needs its admin token: set POSTERN_ADMIN_TOKEN, or POSTERN_ADMIN_TOKEN_FILE'],
    [{ POSTERN_ADMIN_TOKEN: 'wrong' }, 'The admin token is missing or wrong.'],
    [{ POSTERN_ADMIN_TOKEN_FILE: '/nowhere' }, 'POSTERN_ADMIN_TOKEN_FILE: the file cannot be read (ENOENT)'],
    [{ POSTERN_ADMIN_TOKEN: 'x', POSTERN_URL: 'gateway:8080' }, 'POSTERN_URL must be a URL such as https://'],
    [{ POSTERN_ADMIN_TOKEN: 'x', POSTERN_URL: 'https://a:pass-word@b.example' }, 'without a password'],
  ])('exits 1 for %j and says what would do', async (env, message) => {
    // Not here: the token of this gateway is known to nobody else.
    const { code, stdout, stderr } = await runHere(['teams', 'list'], { POSTERN_URL: gateway.url, ...env });
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(message)]);
    expect(stderr).toMatch(/^error: /);
    expect(stderr).not.toMatch(/pass-word|\n {4}at /);
  });

  it.each([
    [200, '<html>', {}],
    [200, '{"id":"other"}', {}],
    [404, '<html>', {}],
    [401, '{"error":{"message":"Bad key","code":"invalid_api_key"}}', {}],
    [302, '', { location: 'https://elsewhere.example/' }],
  ])(
    'says that something else responds with %s %s, and follows no redirect',
    async (status, body, headers) => {
      const seen: string[] = [];
      const server = createServer((req, res) => {
        seen.push(req.url!);
        res.writeHead(status, headers).end(body);
      });
      await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { code, stderr } = await runHere(['teams', 'list', '--url', url], { POSTERN_ADMIN_TOKEN: 'x' });
      await eventually(() => seen.length === 2);
      server.close();
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(`${url} does not respond like the admin API`),
      ]);
      expect(seen.sort()).toEqual(['/admin/v1/session', '/admin/v1/teams?limit=50']);
    },
  );

  it('names the remedy for https:// before a listener without TLS', async () => {
    const env = { POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
    const url = gateway.url.replace('http:', 'https:');
    const { code, stderr } = await runHere(['teams', 'list', '--url', url], env);
    expect([code, stderr]).toEqual([
      1,
      `error: the gateway at ${url} cannot be reached: it does not speak TLS; begin its URL with http:// if it is on this machine\n`,
    ]);
  });

  it.each([['migrate'], ['journal status /nowhere'], ['journal drain /nowhere'], ['providers reseal']])(
    'does not run %s, which is not an endpoint',
    async (command) => {
      const { code, stdout, stderr } = await remote(...command.split(' '));
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(
        /^error: this command needs .*, so it does not work over HTTP; .* without POSTERN_URL\n$/,
      );
    },
  );
});

describe('postern on the machine of a gateway', () => {
  const here = (env: Record<string, string>, ...args: string[]) =>
    runHere(args, { DATA_DIR: gateway.dataDir, DATABASE_URL: gateway.database.url, ...env });

  it('talks to the gateway that has its database and its admin token', async () => {
    expect(await here({ ADMIN_TOKEN }, 'teams', 'create', 'near')).toMatchObject({ code: 0, stderr: '' });
    expect(await lastActor()).toEqual({ actor: 'admin-token', client_ip: '127.0.0.1' });
  });

  it('works on its own database as the user who runs it, where a setting differs', async () => {
    const byUser = { actor: `cli:${userInfo().username}`, client_ip: null };
    expect(await here({}, 'teams', 'create', 'without')).toMatchObject({ code: 0, stderr: '' });
    expect(await lastActor()).toEqual(byUser);
    expect(await here({ ADMIN_TOKEN: 'another-token-0123456789' }, 'teams', 'create', 'other')).toMatchObject(
      { code: 0 },
    );
    expect(await lastActor()).toEqual(byUser);
    const other = await startTestGateway();
    const env = { DATABASE_URL: other.database.url, ADMIN_TOKEN };
    expect(await here(env, 'teams', 'create', 'elsewhere')).toMatchObject({ code: 0, stderr: '' });
    expect(await lastActor()).toEqual(byUser);
    expect(await other.admin('GET', '/teams')).toMatchObject({
      data: [{ name: 'elsewhere' }, { name: 'default' }],
    });
    await other.stop();
  });

  it('no longer finds a gateway that has stopped', async () => {
    const other = await startTestGateway({}, gateway.database);
    const env = { DATA_DIR: other.dataDir, DATABASE_URL: gateway.database.url, ADMIN_TOKEN };
    await other.gateway.stop();
    expect(await runHere(['teams', 'create', 'after'], env)).toMatchObject({ code: 0, stderr: '' });
    expect(await lastActor()).toMatchObject({ client_ip: null });
    await other.stop().catch(() => {});
  });
});
