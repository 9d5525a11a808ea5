import { type ChildProcess, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { Browser, signInSettings, USERS } from '../identity/device-flow.js';
import { statusWith } from '../identity/exchanges.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { type Ran, runCli } from './run-cli.js';
import { runHere } from './run-here.js';
import { SignInHome } from './sign-in-home.js';

const MAIN = resolve(__dirname, '../../dist/src/cli/start.js');

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let home: SignInHome;
const running: ChildProcess[] = [];

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => {
    // To a request for a token, it is a proxy.
    const status = req.head.startsWith('POST /oauth/') ? '418 Of a proxy' : '200 OK';
    req.socket.write(answer(status, [], 'reached'));
  });
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  postern = await startTestGateway({ PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl) });
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});
beforeEach(() => {
  home = new SignInHome();
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill();
  home.remove();
});

const run = (...args: string[]) => runHere(args, home.env);
/** In a process of its own. */
const shell = (...args: string[]) => runCli(args, home.env);
/** Runs `postern sign-in` and confirms, or denies, the code that it shows. */
async function signInHere(action: 'approve' | 'deny' = 'approve'): Promise<Ran> {
  const child = spawn(process.execPath, [MAIN, 'sign-in', `${postern.url}/p/default/`], {
    env: { PATH: process.env.PATH, ...home.env },
  });
  const ran: Ran = { code: null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (ran.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ran.stderr += text));
  const ended = new Promise<number | null>((done) => child.on('close', done));
  running.push(child);
  const [, page, code] = await eventually(() => /^Open (\S+) and type the code (\S+)$/m.exec(ran.stderr));
  expect(page).toBe(`${postern.url}/device`);
  const browser = new Browser(postern);
  await browser.confirm(await browser.identify(issuer, code!, 'jane'), action);
  ran.code = await ended;
  return ran;
}

it('signs in, prints a token that calls, renews it once for two shells, and signs out', async () => {
  expect(await run('token')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: 'error: You are not signed in. Run: postern sign-in <url of the gateway>\n',
  });
  const url = `${postern.url}/p/default`;
  expect(await signInHere()).toMatchObject({
    code: 0,
    stdout: `Signed in to ${url} as jane@example.com.\n`,
  });
  const [signIn] = await postern.database.query<{ program: string }>('SELECT program FROM sign_in');
  expect(signIn!.program).toMatch(/^postern\/\d/);
  expect(statSync(home.file).mode & 0o777).toBe(0o600);
  expect(statSync(join(home.folder, 'postern')).mode & 0o777).toBe(0o700);

  const first = await run('token');
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout).toMatch(/^ptn_[0-9A-Za-z]{38}\n$/);
  expect(await statusWith(postern, first.stdout.trim())).toBe(200);
  expect((await run('token', url)).stdout).toBe(first.stdout);

  home.makeDue();
  const both = await Promise.all([shell('token'), shell('token'), shell('token')]);
  expect(new Set(both.map(({ stdout }) => stdout)).size).toBe(1);
  expect(both[0].stdout).not.toBe(first.stdout);
  const used = await postern.database.query('SELECT FROM refresh_token WHERE used_at IS NOT NULL');
  expect(used).toHaveLength(1);

  expect(await run('sign-out')).toMatchObject({ code: 0, stdout: `Signed out of ${url}.\n` });
  expect(home.all()).toEqual([]);
  await eventually(async () => (await statusWith(postern, both[0].stdout.trim())) === 401);
});

it('deletes the tokens of a gateway at which people cannot sign in any more, and says that it did not end them', async () => {
  await signInHere();
  const off = await startTestGateway({ PROVIDER_URL: provider.url });
  const [, signIn] = home.only();
  for (const base of [off.url, `${off.url}/p/default`]) {
    const there = { ...signIn, revocationEndpoint: `${base}/oauth/revoke` };
    home.store(base, there);
    const { code, stdout } = await run('sign-out');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Deleted the tokens of .*it did not end them: they work until they expire/);
    expect(home.all()).toEqual([]);
  }
  await off.stop();
  // One that cannot be reached may still end them, and so may one whose provider has another name, or that is behind a proxy.
  for (const [base, why] of [
    [off.url, 'cannot be reached'],
    [`${postern.url}/p/renamed`, 'provider_not_found'],
    [provider.url, '418'],
  ]) {
    const there = { ...signIn, revocationEndpoint: `${base}/oauth/revoke` };
    home.store(base!, there);
    const { code, stderr } = await run('sign-out');
    expect([code, stderr]).toEqual([1, expect.stringContaining(why!)]);
    expect(home.all()).toHaveLength(1);
  }
});

it('says that a sign-in was denied, and that one has ended', async () => {
  expect(await signInHere('deny')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('error: The sign-in was denied in the browser.') as string,
  });
  expect(await signInHere()).toMatchObject({ code: 0 });
  await postern.database.query(`UPDATE sign_in SET ended_at = now(), end_reason = 'ended'`);
  home.makeDue();
  const ended = await run('token');
  expect(ended).toMatchObject({ code: 1, stdout: '' });
  expect(ended.stderr).toContain(`has ended. Run: postern sign-in ${postern.url}/p/default`);
});

it('prints the present token while the gateway cannot be reached, as long as it works', async () => {
  expect(await signInHere()).toMatchObject({ code: 0 });
  const { stdout } = await run('token');
  const [url, signIn] = home.only();
  const nowhere = {
    ...signIn,
    tokenEndpoint: 'http://127.0.0.1:1/oauth/token',
    issuedAt: new Date(0).toISOString(),
  };
  home.store(url, nowhere);
  expect(await run('token')).toMatchObject({ code: 0, stdout });
  const over = { ...nowhere, expiresAt: new Date(1).toISOString() };
  home.store(url, over);
  expect(await run('token')).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /http:\/\/127\.0\.0\.1:1 cannot be reached: (?!fetch failed).*; check its URL/,
    ) as string,
  });
});

it('ends the former sign-in to the gateway, or says that it could not', async () => {
  await signInHere();
  const { stdout: former } = await run('token');
  expect(await signInHere()).toMatchObject({
    code: 0,
    stderr: expect.not.stringContaining('former') as string,
  });
  await eventually(async () => (await statusWith(postern, former.trim())) === 401);
  const [url, signIn] = home.only();
  const nowhere = { ...signIn, revocationEndpoint: 'http://127.0.0.1:1/oauth/revoke' };
  home.store(url, nowhere);
  expect(await signInHere()).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /^The former sign-in to \S+ could not be ended, .*: http:\/\/127\.0\.0\.1:1 cannot be reached/m,
    ) as string,
  });
  expect(home.all()).toEqual([[url, expect.not.objectContaining(nowhere)]]);
  expect(await statusWith(postern, (await run('token')).stdout.trim())).toBe(200);
});
