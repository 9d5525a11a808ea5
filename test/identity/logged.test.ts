import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignInIdpSecrets } from '../../src/identity/sign-in/idp-secrets.service.js';
import { SignInMetrics } from '../../src/identity/sign-in/sign-in-metrics.js';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { eventually } from '../support/eventually.js';
import { filesHolding } from '../support/files-below.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, poll, renew, signInSettings, startDevice, USERS } from './device-flow.js';
import { exchange, postForm } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

let provider: RawProvider;
let issuer: OpenIdProvider;
let workload: FakeIssuer;
let collector: Server;
/** What was sent to the collector of traces, and what the gateway has logged. */
let traces = '';
let logged = '';
let settings: Record<string, string>;
let postern: TestGateway;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  workload = await FakeIssuer.start();
  collector = createServer((req, res) => {
    req.setEncoding('utf8').on('data', (text: string) => (traces += text));
    req.on('end', () => res.setHeader('content-type', 'application/json').end('{}'));
  });
  await new Promise<void>((listening) => collector.listen(0, '127.0.0.1', listening));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  settings = { PROVIDER_URL: provider.url, ...signInSettings(issuer, publicUrl), LOG_LEVEL: 'trace' };
});
afterAll(async () => {
  await issuer.stop();
  await workload.stop();
  await provider.stop();
  collector.closeAllConnections();
  await new Promise((closed) => collector.close(closed));
});
beforeEach(async () => {
  logged = '';
  for (const stream of [process.stdout, process.stderr])
    jest.spyOn(stream, 'write').mockImplementation((text) => {
      logged += String(text);
      return true;
    });
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  postern = await startTestGateway({ ...settings, OTEL_EXPORTER_OTLP_ENDPOINT: url });
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
});
afterEach(async () => {
  await postern.stop();
  jest.restoreAllMocks();
});

const rows = (sql: string) => postern.database.query<Record<string, string>>(sql);

it('no secret of a sign-in stands in a line of the log, a trace, a row, a change or a file', async () => {
  const { body } = await startDevice(postern);
  const browser = new Browser(postern);
  await browser.post('/device', { user_code: 'BBBB-BBBB' });
  const page = await browser.identify(issuer, body.user_code, 'jane');
  const [, formToken] = /name="form_token" value="([^"]+)"/.exec(page.html)!;
  const cookie = browser.cookies().get('postern_device')!;
  expect(await poll(postern, body.device_code)).toMatchObject({ status: 400 });
  await browser.confirm(page, 'approve');
  const first = await poll(postern, body.device_code);
  const second = await renew(postern, first.refresh_token!);
  const secrets = {
    device: body.device_code,
    code: body.user_code,
    access: first.access_token!,
    refresh: first.refresh_token!,
    next: second.access_token!,
    nextRefresh: second.refresh_token!,
    cookie,
    formToken: formToken!,
  };
  // Of the provider, before and after it was asked.
  const [signIn] = await postern.database.query<{ id: string; idp_refresh: Buffer }>(
    'SELECT id, idp_refresh FROM sign_in',
  );
  const idp = postern.gateway.app.get(SignInIdpSecrets).open(signIn!.id, signIn!.idp_refresh);
  const shown = Object.entries({ ...secrets, idp });
  for (const [name, secret] of shown) expect([name, secret.length > 8]).toEqual([name, true]);

  // Calls, and each in a place that it is not for.
  const told: string[] = [];
  const bearer = async (secret: string, path = '/v1/models', method = 'GET') => {
    const response = await fetch(postern.url + path, {
      method,
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      ...(method === 'POST' && { body: '{"model":"m"}' }),
    });
    told.push(await response.text());
    return response;
  };
  const call = await bearer(secrets.access, '/v1/chat/completions', 'POST');
  expect(call.status).toBe(200);
  for (const [, secret] of shown) {
    for (const path of ['/v1/models', `/v1/models?key=${secret}`, '/admin/v1/teams', '/managed/settings'])
      await bearer(secret, path);
    told.push(await (await fetch(`${postern.url}/device?user_code=${secret}`)).text());
    told.push((await postForm(`${postern.url}/oauth/token`, { grant_type: secret, [secret]: 'x' })).text);
    for (const wrong of [await poll(postern, secret), await renew(postern, secret)])
      if (wrong.status !== 200) told.push(JSON.stringify(wrong));
  }
  // A request that Postgres fails.
  await rows('ALTER TABLE refresh_token RENAME TO refresh_token_away');
  expect((await renew(postern, secrets.nextRefresh)).status).toBe(503);
  expect(logged).toContain('A request for a token failed');
  const revoked = await postForm(`${postern.url}/oauth/revoke`, { token: secrets.nextRefresh });
  expect([revoked.status, revoked.headers.get('retry-after')]).toEqual([503, '5']);
  await rows('ALTER TABLE refresh_token_away RENAME TO refresh_token');
  await postForm(`${postern.url}/oauth/revoke`, { token: secrets.next });
  await postForm(`${postern.url}/oauth/revoke`, { token: secrets.nextRefresh });
  await postern.admin('POST', '/people/jane@example.com/end', {});

  for (const path of ['/people', '/people/jane@example.com', '/sign-ins', '/audit', '/requests', '/keys'])
    told.push(JSON.stringify(await postern.admin('GET', path)));
  const row = await postern.row(call.headers.get('x-gateway-request-id')!);
  expect(row).toMatchObject({ subject: 'sso:jane@example.com' });
  const texts = shown.map(([, secret]) => secret);
  const files = await filesHolding(postern.dataDir, texts);
  const audit = JSON.stringify(await rows('SELECT t::text AS row FROM audit_log t'));
  expect(audit).toContain('sign_in');
  const requests = JSON.stringify(await rows('SELECT t::text AS row FROM request_log t'));
  await eventually(() => traces.includes('chat'));
  // The last spans are sent when it stops.
  await postern.stop();
  for (const [name, secret] of shown)
    for (const [where, text] of Object.entries({ logged, traces, audit, requests, told: told.join() }))
      expect([name, where, text.includes(secret)]).toEqual([name, where, false]);
  expect(files).toEqual([]);
});

it('counts sign-ins from their begin to their end', async () => {
  const live = async () => {
    await postern.gateway.app.get(SignInMetrics).count();
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
    const text = await (await fetch(`${postern.url}/metrics`, { headers })).text();
    const count = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
    return [
      count('postern_sign_ins'),
      ...['device', 'refresh'].map((grant) =>
        count(`postern_tokens_issued_total\\{grant="${grant}",result="issued"\\}`),
      ),
    ];
  };
  expect(await live()).toEqual([0, Number.NaN, Number.NaN]);
  const one = await signIn();
  await signIn();
  expect(await live()).toEqual([2, 2, Number.NaN]);
  // A renewal is the same sign-in.
  const renewed = await renew(postern, one.refresh_token!);
  expect(await live()).toEqual([2, 2, 1]);
  await postForm(`${postern.url}/oauth/revoke`, { token: renewed.refresh_token! });
  expect(await live()).toEqual([1, 2, 1]);
  await rows(`UPDATE sign_in SET expires_at = now()`);
  expect(await live()).toEqual([0, 2, 1]);
});

async function signIn() {
  const { body } = await startDevice(postern);
  await new Browser(postern).signIn(issuer, body.user_code, 'jane');
  return poll(postern, body.device_code);
}

it('says of a rejected token which trust and why, and as much of the address as rows have', async () => {
  await postern.admin('POST', '/trusts', {
    ...{ name: 'jobs', issuer: workload.url, audience: 'gateway', claims: { sub: ['job'] } },
    key: (
      await postern.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'ci', secret: false })
    ).id,
  });
  const address = '203.0.113.77';
  for (const [detail, shown] of [
    ['full', ', from 203.0.113.77'],
    ['truncated', ', from 203.0.113.0'],
    ['none', ''],
  ] as const) {
    const port = { PORT: '0', REQUEST_LOG_CLIENT: detail };
    const replica = await startTestGateway({ ...settings, ...port }, postern.database);
    logged = '';
    const wrong = await workload.sign({ sub: 'another' });
    const headers = { 'x-forwarded-for': address };
    for (let i = 0; i < 3; i++)
      expect((await exchange(replica, 'jobs', wrong, {}, headers)).status).toBe(400);
    const unknown = await exchange(replica, `${address} made up`, wrong, {}, headers);
    expect(unknown.status).toBe(400);
    await replica.stop();
    const lines = logged.split('\n').filter((line) => line.includes('Rejected a token'));
    // One for each trust and reason. What is no trust is anybody's words.
    expect(lines.map((line) => line.slice(line.indexOf('Rejected')))).toEqual([
      `Rejected a token for the trust jobs: claim (sub)${shown}`,
      `Rejected a token for an unknown trust: unknown_trust (no trust has this name)${shown}`,
    ]);
    if (detail !== 'full') expect(logged).not.toContain(address);
    expect(logged).not.toContain(wrong);
  }
});
