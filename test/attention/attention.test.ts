import { ProviderHealthWatch } from '../../src/provider-health/provider-health.service.js';
import type { Attention, AttentionItem } from '../../src/attention/attention.schema.js';
import { FakeProvider } from '../../src/testing/fake-provider.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { insertRow } from '../request-log/rows.js';

let provider: FakeProvider;
let postern: TestGateway;
beforeAll(async () => {
  provider = await FakeProvider.start();
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

interface Key {
  id: string;
  key: string;
  team_id: string;
}

async function attention(token?: string): Promise<AttentionItem[]> {
  if (token === undefined) return (await postern.admin<Attention>('GET', '/attention')).data;
  const response = await fetch(`${postern.url}/admin/v1/attention`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(response.status).toBe(200);
  return ((await response.json()) as Attention).data;
}

const create = (name: string, more: object = {}, team = 'default') =>
  postern.admin<Key>('POST', '/keys', { team, name, ...more });
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
const only = async (kind: string) => (await attention()).filter((item) => item.kind === kind);
const ago = (days: number) => `now() - interval '${days} days'`;

const NO_MORE = { since: null, detail: null };

it('is empty if all is well', async () => {
  await create('fresh', { expires_at: inDays(8) });
  expect(await attention()).toEqual([]);
});

describe('lists', () => {
  it('that no provider takes calls, until one is added and enabled', async () => {
    const empty = await startTestGateway();
    try {
      const list = async () => (await empty.admin<Attention>('GET', '/attention')).data;
      const missing = { kind: 'provider_missing', level: 'critical', count: 1, names: [] };
      expect(await list()).toEqual([missing]);
      await empty.admin('POST', '/providers', { name: 'first', url: provider.url, secret: null });
      expect(await list()).toEqual([]);
      await empty.admin('PATCH', '/providers/first', { enabled: false });
      expect(await list()).toEqual([missing]);
    } finally {
      await empty.stop();
    }
  });

  it('a provider that fails, with what most calls report, until it is disabled', async () => {
    await postern.admin('POST', '/providers', { name: 'groq', url: 'http://127.0.0.1:9', secret: null });
    const failed = { provider: 'groq', status: 429, provider_error_code: 'insufficient_quota' };
    for (let i = 0; i < 6; i++) await insertRow(postern.database, new Date(), failed);
    await postern.gateway.app.get(ProviderHealthWatch).run();
    expect(await attention()).toEqual([
      {
        kind: 'provider_failing',
        level: 'critical',
        count: 1,
        names: [
          {
            id: null,
            name: 'groq',
            since: expect.stringMatching(/^\d{4}-.*Z$/) as string,
            detail: '6 of 6 calls failed in the last minutes, mostly insufficient_quota',
          },
        ],
      },
    ]);
    await postern.admin('PATCH', '/providers/groq', { enabled: false });
    expect(await attention()).toEqual([]);
  });

  it('every provider that fails, because lists of providers mark them', async () => {
    const names = ['one', 'two', 'three', 'four', 'five', 'six'];
    for (const name of names) {
      await postern.admin('POST', '/providers', { name, url: 'http://127.0.0.1:9', secret: null });
      await postern.database.query(
        `INSERT INTO failing_provider (provider, calls, failures, reason, last_call_at) VALUES ($1, 9, 9, '500', now())`,
        [name],
      );
    }
    const [item] = await only('provider_failing');
    expect(item!.names.map(({ name }) => name).sort()).toEqual([...names].sort());
    await postern.database.query('DELETE FROM failing_provider');
  });

  it('keys that expire within 7 days, the first one first, and no others', async () => {
    const later = await create('later', { expires_at: inDays(6.5) });
    const soon = await create('soon', { expires_at: inDays(1) });
    const disabled = await create('disabled', { expires_at: inDays(1) });
    await postern.admin('PATCH', `/keys/${disabled.id}`, { disabled: true });
    const [item] = await only('key_expiring');
    expect(item).toEqual({
      kind: 'key_expiring',
      level: 'warning',
      count: 2,
      names: [
        { id: soon.id, name: 'default/soon', since: null, detail: null },
        { id: later.id, name: 'default/later', since: null, detail: null },
      ],
    });
    const listed = await postern.admin<{ data: unknown[] }>(
      'GET',
      `/keys?status=active&expires_before=${inDays(7)}`,
    );
    expect(listed.data).toHaveLength(item!.count);
    for (const { id } of [later, soon]) await postern.admin('POST', `/keys/${id}/revoke`, {});
    expect(await only('key_expiring')).toEqual([]);
  });

  it('keys that nobody has used for 90 days, or ever', async () => {
    const never = await create('never');
    const used = await create('used');
    await postern.database.query(
      `UPDATE gateway_key SET created_at = ${ago(91)} WHERE id IN ('${never.id}', '${used.id}')`,
    );
    await postern.database.query(
      `UPDATE gateway_key_secret SET last_used_at = ${ago(89)} WHERE key_id = '${used.id}'`,
    );
    expect(await only('key_unused')).toMatchObject([{ count: 1, names: [{ name: 'default/never' }] }]);
    await postern.admin('POST', `/keys/${never.id}/revoke`, {});
  });

  it('keys whose old secret is still used after a rotation', async () => {
    const { id } = await create('rotated');
    await postern.admin('POST', `/keys/${id}/rotate`, { grace_seconds: 604_800 });
    await postern.database.query(
      `UPDATE gateway_key_secret SET created_at = ${ago(1)}, last_used_at = ${ago(2)} WHERE key_id = '${id}'`,
    );
    expect(await only('key_old_secret')).toEqual([]);
    await postern.database.query(
      `UPDATE gateway_key_secret SET last_used_at = now() WHERE key_id = '${id}' AND expires_at IS NOT NULL`,
    );
    expect(await only('key_old_secret')).toMatchObject([
      { count: 1, names: [{ id, name: 'default/rotated' }] },
    ]);
    await postern.admin('POST', `/keys/${id}/revoke`, {});
  });

  it('budgets that reject calls, until they are raised', async () => {
    const { id, key } = await create('spender', { budgets: [{ tokens: 1, period: 'day' }] });
    const call = () =>
      fetch(`${postern.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: '{"model":"m","max_tokens":100}',
      });
    expect((await call()).status).toBe(402);
    const [item] = await eventually(async () => {
      const found = await only('budget_blocking');
      return found.length > 0 && found;
    });
    expect(item).toMatchObject({ level: 'critical', count: 1, names: [{ name: 'default/spender' }] });
    await postern.admin('PATCH', `/keys/${id}`, { budgets: [] });
    expect(await only('budget_blocking')).toEqual([]);
  });

  it('models without a price, and sinks and webhooks that fail', async () => {
    await postern.database.query(
      `INSERT INTO unpriced_model (provider, model, day) VALUES ('groq', 'llama', (now() AT TIME ZONE 'UTC')::date)`,
    );
    const { id } = await postern.admin<{ id: string }>('POST', '/sinks', {
      name: 'warehouse',
      kind: 'http',
      url: 'http://127.0.0.1:9',
    });
    const hook = await postern.admin<{ id: string }>('POST', '/webhooks', {
      url: 'http://127.0.0.1:9/secret',
      events: ['key.expiring'],
    });
    // A sink that has everything is moved on, and does not fail any more: this one has nothing to read.
    await postern.database.query(
      `UPDATE sink SET failing_since = now(), last_error = 'It refuses.', recorded_until = now() + interval '1 day'`,
    );
    await postern.database.query(`
      SELECT webhook_emit('key.expiring', '{}'::jsonb);
      UPDATE webhook_delivery SET attempts = 8, next_attempt_at = NULL, attempted_at = now(), error = 'refused'`);
    const items = (await attention()).map(({ kind, names }) => ({ kind, names }));
    expect(items).toEqual(
      expect.arrayContaining([
        { kind: 'price_missing', names: [{ ...NO_MORE, id: null, name: 'groq/llama' }] },
        { kind: 'sink_failing', names: [{ id, name: 'warehouse', since: null, detail: 'It refuses.' }] },
        { kind: 'webhook_failing', names: [{ ...NO_MORE, id: hook.id, name: 'http://127.0.0.1:9/…' }] },
      ]),
    );
    await postern.database.query('DELETE FROM webhook_delivery; DELETE FROM webhook; DELETE FROM sink');
  });

  it('what is of their teams to members, and everything to viewers', async () => {
    const team = await postern.admin<{ id: string }>('POST', '/teams', { name: 'search' });
    await create('theirs', { expires_at: inDays(2) }, 'search');
    await create('of-others', { expires_at: inDays(2) });
    const tokenOf = async (role: string, teams?: string[]) =>
      (
        await postern.admin<{ token: string }>('POST', '/tokens', {
          name: role,
          role,
          ...(teams && { teams }),
        })
      ).token;
    const member = await attention(await tokenOf('team', [team.id]));
    expect(member).toMatchObject([{ kind: 'key_expiring', count: 1, names: [{ name: 'search/theirs' }] }]);
    const viewer = await attention(await tokenOf('viewer'));
    expect(viewer).toMatchObject([{ kind: 'key_expiring', count: 2 }, { kind: 'price_missing' }]);
  });
});
