import { OpenIdProvider } from '../admin/openid-provider.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { Browser, poll, signInSettings, startDevice, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

let provider: RawProvider;
let issuer: OpenIdProvider;
let postern: TestGateway;
let publicUrl: string;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  postern = await startTestGateway({
    PROVIDER_URL: provider.url,
    ...signInSettings(issuer, publicUrl),
    PORT: '0',
    ADMIN_PORT: new URL(publicUrl).port,
  });
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
});
afterAll(async () => {
  await postern.stop();
  await issuer.stop();
  await provider.stop();
});

it('clients sign in at the port of calls, and people confirm them at the admin port', async () => {
  const { body } = await startDevice(postern);
  expect(body.verification_uri).toBe(`${publicUrl}/device`);
  for (const path of ['/device', '/device/confirm'])
    expect((await fetch(postern.url + path)).status).toBe(404);
  const page = await new Browser({ url: publicUrl }).signIn(issuer, body.user_code, 'jane');
  expect(page.status).toBe(200);
  const { access_token: token } = await poll(postern, body.device_code);
  expect(await statusWith(postern, token!)).toBe(200);
});

it('clients get no token at the admin port, and nothing there says where they do', async () => {
  const paths = ['/oauth/token', '/oauth/revoke', '/oauth/device_authorization'];
  for (const path of paths) {
    expect([path, (await fetch(publicUrl + path, { method: 'POST' })).status]).toEqual([path, 404]);
    expect([path, (await fetch(postern.url + path, { method: 'POST' })).status]).toEqual([path, 400]);
  }
  const metadata = '/.well-known/oauth-authorization-server';
  for (const path of [metadata, `${metadata}/p/default`, '/managed/settings'])
    expect([path, (await fetch(publicUrl + path)).status]).toEqual([path, 404]);
  for (const path of [metadata, `${metadata}/p/default`])
    expect([path, (await fetch(postern.url + path)).status]).toEqual([path, 200]);
});
