import { createHmac, randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { ResealService } from '../../src/providers/reseal.service.js';
import { commandUser } from '../../src/platform/actor.js';
import { signatureOf } from '../../src/webhooks/webhook-message.js';
import { call, fieldsOf } from '../admin/call.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { Receiver, verified } from './receiver.js';

const OLD_KEY = randomBytes(32).toString('base64');
let gateway: TestGateway;
let receiver: Receiver;
beforeAll(async () => {
  gateway = await startTestGateway({ MASTER_KEY: OLD_KEY });
  receiver = await new Receiver().listen();
});
afterAll(async () => {
  await gateway.stop();
  await receiver.close();
});
beforeEach(() => gateway.database.query('DELETE FROM webhook'));

interface View {
  id: string;
  url: string;
  secret: string;
  version: number;
  secret_state: string;
}

const create = (body: object = {}) =>
  gateway.admin<View>('POST', '/webhooks', { url: receiver.url, events: ['key.expiring'], ...body });

it('shows the secret once, and stores neither it nor the path and query of the URL in clear', async () => {
  const { id, secret, ...created } = await create({
    events: ['key.expiring', 'budget.threshold', 'key.expiring'],
  });
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const view = {
    url: `${new URL(receiver.url).origin}/…`,
    events: ['key.expiring', 'budget.threshold'],
    format: 'standard',
    secret_state: 'sealed',
    waiting: 0,
    last_delivery: null,
    version: 1,
  };
  expect(created).toMatchObject(view);
  const shown = await gateway.admin('GET', `/webhooks/${id}`);
  expect(shown).toMatchObject({ id, ...view });
  expect(shown).not.toHaveProperty('secret');
  expect(await gateway.admin('GET', '/webhooks')).toEqual({ data: [shown], next_cursor: null });
  const stored = [
    ...(await gateway.database.query<object>(`SELECT id, shown_url, encode(sealed, 'escape') FROM webhook`)),
    ...(await gateway.database.query<object>('SELECT * FROM audit_log')),
  ];
  const text = JSON.stringify(stored) + JSON.stringify(shown);
  for (const canary of [secret, secret.slice('whsec_'.length), 'canary-receiver-token', 'hooks'])
    expect(text).not.toContain(canary);
});

it('changes the URL and the events, with If-Match, and records what changed', async () => {
  const { id, secret } = await create();
  const moved = receiver.url.replace('canary-receiver-token', 'another');
  const first = await call(gateway, 'GET', `/webhooks/${id}`);
  const changed = await call(
    gateway,
    'PATCH',
    `/webhooks/${id}`,
    { url: moved },
    {
      'if-match': first.headers.get('etag')!,
    },
  );
  expect(changed.body).toMatchObject({ version: 2 });
  const time = ({ body }: { body: unknown }) => Date.parse((body as { updated_at: string }).updated_at);
  expect(time(changed)).toBeGreaterThan(time(first));
  const late = await call(
    gateway,
    'PATCH',
    `/webhooks/${id}`,
    { events: ['price.missing'] },
    {
      'if-match': first.headers.get('etag')!,
    },
  );
  expect(late.status).toBe(409);
  // The same again changes nothing.
  expect(await gateway.admin('PATCH', `/webhooks/${id}`, { url: moved })).toMatchObject({ version: 2 });
  const { data } = await gateway.admin<{ data: object[] }>('GET', `/audit?subject_id=${id}`);
  expect(data).toMatchObject([
    { action: 'changed', subject_type: 'webhook', after: { url_changed: true } },
    { action: 'created', subject_name: `${new URL(receiver.url).origin}/…` },
  ]);
  receiver.received.length = 0;
  await gateway.admin('POST', `/webhooks/${id}/test`);
  expect(receiver.received[0]!.path).toContain('token=another');
  // The secret stays.
  verified(receiver.received[0]!, secret);
});

it('keeps a webhook readable that is changed by its ID in capital letters', async () => {
  const { id } = await create();
  const path = `/webhooks/${id.toUpperCase()}`;
  expect(await gateway.admin('PATCH', path, { events: ['price.missing'] })).toMatchObject({ id, version: 2 });
  expect(await gateway.admin('GET', path)).toMatchObject({ secret_state: 'sealed' });
});

it('tests a webhook: signed, once, with the reason if it fails', async () => {
  const { id, secret } = await create();
  receiver.received.length = 0;
  expect(await gateway.admin('POST', `/webhooks/${id}/test`)).toMatchObject({
    ok: true,
    code: 'ok',
    status: 204,
  });
  expect(verified(receiver.received[0]!, secret)).toMatchObject({
    type: 'webhook.test',
    data: { webhook_id: id },
  });
  receiver.status = 404;
  expect(await gateway.admin('POST', `/webhooks/${id}/test`)).toMatchObject({
    ok: false,
    code: 'unexpected_status',
    status: 404,
  });
  receiver.status = 204;
  const own = await create({ url: `${gateway.url}/admin/v1/teams` });
  expect(await gateway.admin('POST', `/webhooks/${own.id}/test`)).toMatchObject({
    ok: false,
    code: 'forbidden_address',
    status: null,
  });
  const closed = await create({ url: 'http://127.0.0.1:9/' });
  expect(await gateway.admin('POST', `/webhooks/${closed.id}/test`)).toMatchObject({ code: 'refused' });
  expect(receiver.received).toHaveLength(2);
});

it.each([
  [{ url: 'http://169.254.169.254/latest/meta-data' }, 'url'],
  [{ url: 'http://[fd00:ec2::254]/' }, 'url'],
  [{ url: 'http://0.0.0.0:80/' }, 'url'],
  [{ url: 'http://1.1.1.1/' }, 'url'],
  [{ url: 'https://user:password@example.com/' }, 'url'],
  [{ url: 'https://example.com/#fragment' }, 'url'],
  [{ url: 'ftp://example.com/' }, 'url'],
  [{ url: 'https:\\\\example.com' }, 'url'],
  [{ events: [] }, 'events'],
  [{ events: ['provider.down'] }, 'events.0'],
  [{ format: 'teams' }, 'format'],
  [{ secret: 'mine' }, 'secret'],
])('rejects %j', async (members, field) => {
  const body = { url: receiver.url, events: ['key.expiring'], ...members };
  const { status, ...rejected } = await call(gateway, 'POST', '/webhooks', body);
  expect(status).toBe(400);
  expect(fieldsOf({ status, ...rejected })).toEqual([field]);
});

it('responds with 404 for what is not there, and limits the number of webhooks', async () => {
  for (const [method, path] of [
    ['GET', ''],
    ['PATCH', ''],
    ['DELETE', ''],
    ['POST', '/test'],
  ] as const) {
    for (const id of ['01890a5d-ac96-774b-bcce-b302099a8057', 'nonsense'])
      expect(
        (await call(gateway, method, `/webhooks/${id}${path}`, method === 'GET' ? undefined : {})).status,
      ).toBe(404);
  }
  for (let i = 0; i < 20; i++) await create();
  expect(
    (await call(gateway, 'POST', '/webhooks', { url: receiver.url, events: ['key.expiring'] })).status,
  ).toBe(409);
});

it('is re-encrypted with a new master key, by which another gateway then delivers', async () => {
  const { id, secret } = await create();
  const newKey = randomBytes(32).toString('base64');
  const both = await startTestGateway({ MASTER_KEY: newKey, MASTER_KEY_PREVIOUS: OLD_KEY }, gateway.database);
  const done = await both.gateway.app.get(ResealService).reseal(commandUser());
  expect(done.resealed).toEqual([`webhook ${id}`]);
  await both.stop();
  expect(await gateway.admin('GET', `/webhooks/${id}`)).toMatchObject({ secret_state: 'unreadable' });
  await expect(gateway.admin('POST', `/webhooks/${id}/test`)).rejects.toThrow(/: 409 /);
  const after = await startTestGateway({ MASTER_KEY: newKey }, gateway.database);
  receiver.received.length = 0;
  expect(await after.admin('POST', `/webhooks/${id}/test`)).toMatchObject({ ok: true });
  verified(receiver.received[0]!, secret);
  await after.stop();
});

it('signs as the package of Standard Webhooks does', () => {
  const key = randomBytes(32);
  const secret = `whsec_${key.toString('base64')}`;
  const at = new Date(1_700_000_000_000);
  const body = '{"type":"webhook.test","text":"Grüße 🎉"}';
  expect(signatureOf(secret, 'event', 1_700_000_000, body)).toBe(new Webhook(secret).sign('event', at, body));
  const expected = createHmac('sha256', key).update(`event.1700000000.${body}`).digest('base64');
  expect(signatureOf(secret, 'event', 1_700_000_000, body)).toBe(`v1,${expected}`);
});
