import pg from 'pg';
import { ADVISORY_LOCKS } from '../../src/database/advisory-locks.js';
import { PricesService } from '../../src/pricing/prices.service.js';
import { createDays } from '../request-log/rows.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { type Priced, startPriced } from './priced-provider.js';

interface Price {
  id: string;
  model: string;
  catalog: string;
  source: string;
  version: number;
  input: string | null;
}

interface Resolution {
  catalog: string | null;
  price: Price | null;
  reason: string;
}

let priced: Priced;
let replica: Priced;
beforeAll(async () => {
  priced = await startPriced();
  replica = await startPriced(priced);
  const { url } = priced.provider;
  for (const [name, catalog] of [
    ['one', 'openai'],
    ['two', 'openai'],
    ['local', null],
    ['router', 'openrouter'],
  ]) {
    await priced.gateway.admin('POST', '/providers', { name, url, secret: null, catalog });
  }
});
afterAll(async () => {
  await replica.gateway.stop();
  await priced.gateway.stop();
});

const admin = <T = Price>(method: string, path: string, body?: unknown) =>
  priced.gateway.admin<T>(method, path, body);
const resolve = (provider: string, model: string, at = '') =>
  admin<Resolution>('GET', `/prices/resolve?provider=${provider}&model=${model}${at && `&at=${at}`}`);
const callPriced = (model: string) => priced.call('local', model, USAGE);
const query = <T extends object>(text: string, values: unknown[] = []) =>
  priced.gateway.database.query<T>(text, values);
const USAGE = { prompt_tokens: 1_000_000, completion_tokens: 0 };

async function send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${priced.gateway.url}/admin/v1/prices${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    body: (text === '' ? null : JSON.parse(text)) as Record<string, unknown>,
    headers: response.headers,
  };
}

describe('the price of a model', () => {
  never(
    'is the custom one of the provider, then of its list, then of the catalog; the longest match; the latest',
    async () => {
      expect(await resolve('one', 'gpt-4o')).toMatchObject({
        catalog: 'openai',
        price: { source: 'catalog', catalog: 'openai', model: 'gpt-4o' },
        reason: 'Price list openai; no custom price matches.',
      });
      const make = (catalog: string, model: string, input: string, from?: string) =>
        admin('POST', '/prices', { catalog, model, input, ...(from && { effective_from: from }) });
      await make('openai', '*', '1');
      expect(await resolve('one', 'gpt-4o')).toMatchObject({ price: { model: '*', source: 'custom' } });
      await make('openai', 'gpt-*', '2');
      expect(await resolve('one', 'gpt-4o')).toMatchObject({ price: { model: 'gpt-*' } });
      await make('openai', 'gpt-4o', '3');
      expect(await resolve('one', 'gpt-4o')).toMatchObject({ price: { input: '3.000000' } });
      // Its own name, however short the match.
      await make('one', 'g*', '4');
      expect(await resolve('one', 'gpt-4o')).toMatchObject({
        price: { input: '4.000000' },
        reason: 'Custom price for provider one, model g*: the longest match.',
      });
      expect(await resolve('two', 'gpt-4o')).toMatchObject({
        price: { input: '3.000000' },
        reason: 'Custom price for price list openai, model gpt-4o: the longest match.',
      });
      // A longer match that has not begun does not count yet.
      await make('openai', 'gpt-4o', '5', '2031-01-01T00:00:00Z');
      expect(await resolve('two', 'gpt-4o', '2030-12-31T23:59:59.999Z')).toMatchObject({
        price: { input: '3.000000' },
      });
      expect(await resolve('two', 'gpt-4o', '2031-01-01T00:00:00Z')).toMatchObject({
        price: { input: '5.000000' },
      });
      await make('local', 'later', '6', '2031-01-01T00:00:00Z');
      expect(await resolve('local', 'later', '2030-01-01T00:00:00Z')).toMatchObject({ price: null });
    },
  );

  never(
    'is none for a local provider without a custom price, and for a provider that does not exist',
    async () => {
      expect(await resolve('local', 'gpt-4o')).toMatchObject({
        catalog: null,
        price: null,
        reason: 'Provider local has no price list, and no custom price matches.',
      });
      expect(await resolve('nobody', 'gpt-4o')).toMatchObject({ catalog: null, price: null });
    },
  );

  never('is not decided by the case in which a client writes the name', async () => {
    const make = (model: string, input: string) => admin('POST', '/prices', { catalog: 'two', model, input });
    await make('gpt-4.1', '1');
    await make('gpt-4.1-*', '2');
    await make('Gpt-4.1-Mini', '3');
    const priceOf = async (model: string) => (await resolve('two', model)).price;
    // Not that of the catalog, nor that of a shorter pattern in the right case.
    expect(await priceOf('GPT-4.1')).toMatchObject({ model: 'gpt-4.1', source: 'custom' });
    expect(await priceOf('GPT-4.1-nano')).toMatchObject({ model: 'gpt-4.1-*' });
    expect(await priceOf('gpt-4.1-mini')).toMatchObject({ model: 'Gpt-4.1-Mini' });
    await make('GPT-4.1', '4');
    expect(await priceOf('GPT-4.1')).toMatchObject({ model: 'GPT-4.1' });
    expect(await priceOf('gpt-4.1')).toMatchObject({ model: 'gpt-4.1' });
  });

  it('is not decided by an asterisk that a client sends', async () => {
    // The catalog finds a model for this name; the row that is stored for it is no pattern.
    await priced.gateway.admin('POST', '/providers', {
      name: 'star',
      url: priced.provider.url,
      secret: null,
      catalog: 'anthropic',
    });
    expect(await resolve('star', 'claude-sonnet-4-5*')).toMatchObject({
      price: { source: 'catalog', model: 'claude-sonnet-4-5*' },
    });
    expect(await resolve('star', 'claude-sonnet-4-5')).toMatchObject({
      price: { model: 'claude-sonnet-4-5' },
    });
  });

  it('changes at once in this process, and soon in every other', async () => {
    const on = (gateway: Priced) => gateway.call('local', 'shared', USAGE);
    expect(await on(priced)).toMatchObject({ cost_usd: null });
    expect(await on(replica)).toMatchObject({ cost_usd: null });
    const { id } = await admin('POST', '/prices', { catalog: 'local', model: 'shared', input: '1' });
    expect(await callPriced('shared')).toMatchObject({ cost_usd: '1.000000000' });
    await eventually(async () => (await on(replica)).cost_usd === '1.000000000');
    await admin('PATCH', `/prices/${id}`, { input: '2' });
    expect(await callPriced('shared')).toMatchObject({ cost_usd: '2.000000000' });
    await eventually(async () => (await on(replica)).cost_usd === '2.000000000');
    expect((await send('DELETE', `/${id}`)).status).toBe(204);
    expect(await on(priced)).toMatchObject({ cost_usd: null });
    await eventually(async () => (await on(replica)).cost_usd === null);
  });

  it('applies the price it was given before it responds, without a notification', async () => {
    await query('ALTER TABLE price DISABLE TRIGGER ALL');
    expect(await resolve('local', 'at-once')).toMatchObject({ price: null });
    await admin('POST', '/prices', { catalog: 'local', model: 'at-once', input: '1' });
    expect(await resolve('local', 'at-once')).toMatchObject({ price: { model: 'at-once' } });
    await query('ALTER TABLE price ENABLE TRIGGER ALL');
  });

  it('follows the price list of its provider', async () => {
    await priced.gateway.admin('POST', '/providers', {
      name: 'moving',
      url: priced.provider.url,
      secret: null,
    });
    expect(await priced.call('moving', 'claude-haiku-4-5', USAGE)).toMatchObject({ cost_usd: null });
    await priced.gateway.admin('PATCH', '/providers/moving', { catalog: 'anthropic' });
    await resolve('moving', 'claude-haiku-4-5');
    expect(await priced.call('moving', 'claude-haiku-4-5', USAGE)).toMatchObject({ cost_usd: '1.000000000' });
  });
});

describe('/admin/v1/prices', () => {
  it('lists, changes and removes custom prices, and records each change', async () => {
    const made = await send('POST', '', { catalog: 'local', model: 'm', input: '1.5', note: 'as agreed' });
    expect(made.status).toBe(201);
    const { id } = made.body as unknown as Price;
    expect(made.body).toMatchObject({
      input: '1.500000',
      output: null,
      effective_from: '1970-01-01T00:00:00.000Z',
      source: 'custom',
      version: 1,
      note: 'as agreed',
    });
    expect((await admin<{ data: Price[] }>('GET', '/prices?catalog=local&model=m')).data).toEqual([
      made.body,
    ]);
    const same = await send('PATCH', `/${id}`, { input: '1.50' });
    expect(same.body).toEqual(made.body);
    const changed = await send('PATCH', `/${id}`, { output: '3' }, { 'if-match': made.headers.get('etag')! });
    expect(changed.body).toMatchObject({ output: '3.000000', version: 2 });
    expect(
      (await send('PATCH', `/${id}`, { output: '4' }, { 'if-match': made.headers.get('etag')! })).status,
    ).toBe(409);
    expect((await send('DELETE', `/${id}`)).status).toBe(204);
    expect((await send('DELETE', `/${id}`)).status).toBe(404);
    const { data } = await admin<{ data: object[] }>('GET', '/audit?subject_type=price&limit=3');
    expect(data).toMatchObject([
      { action: 'removed', subject_name: 'local/m' },
      { action: 'changed', before: { output: null }, after: { output: '3.000000' } },
      { action: 'created', after: { input: '1.500000', note: 'as agreed' } },
    ]);
  });

  it('rejects a second price for the same time, and changes of the catalog', async () => {
    const price = { catalog: 'local', model: 'twice', input: '1' };
    expect((await send('POST', '', price)).status).toBe(201);
    expect(await send('POST', '', price)).toMatchObject({
      status: 409,
      body: { error: { details: [{ field: 'effective_from' }] } },
    });
    await resolve('two', 'gpt-4o-mini');
    const [{ id }] = (await query<Price>("SELECT * FROM price WHERE source = 'catalog' LIMIT 1")) as [Price];
    for (const [method, body] of [
      ['PATCH', { input: '1' }],
      ['DELETE', undefined],
    ] as const) {
      expect(await send(method, `/${id}`, body)).toMatchObject({
        status: 409,
        body: { error: { details: [{ field: 'source' }] } },
      });
    }
  });

  it.each<[object, string]>([
    [{ model: 'm', input: '1' }, 'catalog'],
    [{ catalog: 'local', model: 'a*b', input: '1' }, 'model'],
    [{ catalog: 'local', model: '', input: '1' }, 'model'],
    [{ catalog: 'local', model: 'm', input: 1 }, 'input'],
    [{ catalog: 'local', model: 'm', input: '-1' }, 'input'],
    [{ catalog: 'local', model: 'm', input: '1.0000001' }, 'input'],
    [{ catalog: 'local', model: 'm', input: '1e3' }, 'input'],
    [{ catalog: 'local', model: 'm', input: '1', tiers: [{ output: '1' }] }, 'tiers'],
    [{ catalog: 'local', model: 'm', input: '1', tiers: [{ between: ['24:00:00', '01:00:00'] }] }, 'tiers'],
    [{ catalog: 'local', model: 'm', input: '1', extra: { video: '1' } }, 'extra'],
    [{ catalog: 'local', model: 'm' }, 'body'],
  ])('rejects %j', async (body, field) => {
    const { status, body: error } = await send('POST', '', body);
    expect(status).toBe(400);
    const [detail] = (error as { error: { details: { field: string }[] } }).error.details;
    expect(detail!.field.split('.')[0]).toBe(field);
  });
});

describe('repricing', () => {
  // Far longer than the log: only the part with rows is read.
  const range = () => ({
    from: '1990-01-01T00:00:00Z',
    to: new Date(Date.now() + 60_000).toISOString(),
  });

  it('computes stored costs again, but for those that the provider reported, and says what it would do', async () => {
    const { id } = await admin('POST', '/prices', { catalog: 'local', model: 'rep', input: '1' });
    const row = await callPriced('rep');
    const reported = await priced.call('router', 'rep', { ...USAGE, cost: 7 });
    await admin('PATCH', `/prices/${id}`, { input: '3' });
    const ask = (dry_run: boolean) =>
      admin<object>('POST', '/prices/reprice', { ...range(), model: 'rep', dry_run });
    const expected = {
      rows: 1,
      changed: 1,
      cost_before: '1.000000000',
      cost_after: '3.000000000',
      next_cursor: null,
    };
    const usage = () => admin<{ totals: object }>('GET', '/usage?group_by=model&tz=UTC&model=rep');
    await eventually(async () => (await query("SELECT FROM usage_slot WHERE model = 'rep'")).length === 2);
    expect(await ask(true)).toEqual({ ...expected, dry_run: true });
    expect(await priced.gateway.row(row.id)).toMatchObject({ cost_usd: '1.000000000', repaired_at: null });
    expect(await ask(false)).toEqual({ ...expected, dry_run: false });
    // The half-hourly sums had the old cost.
    expect(await usage()).toMatchObject({ totals: { calls: 2, cost_usd: '10.000000000' } });
    const after = await priced.gateway.row(row.id);
    expect(after).toMatchObject({ cost_usd: '3.000000000', price_id: id });
    expect(after.repaired_at).toEqual(after.recorded_at);
    expect((after.recorded_at as Date).getTime()).toBeGreaterThan((row.recorded_at as Date).getTime());
    expect(await priced.gateway.row(reported.id)).toMatchObject({
      cost_usd: '7.000000000',
      repaired_at: null,
    });
    // Again, nothing changes.
    expect(await ask(false)).toMatchObject({ rows: 1, changed: 0, cost_before: '3.000000000' });
    const backwards = { from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z', dry_run: true };
    expect(await send('POST', '/reprice', backwards)).toMatchObject({
      status: 400,
      body: { error: { details: [{ field: 'from', message: 'must be before to' }] } },
    });
    const { data } = await admin<{ data: object[] }>('GET', '/audit?action=repriced');
    expect(data).toMatchObject([{ subject_name: 'request log' }, { after: { model: 'rep' } }]);
  });

  it('commits every 5,000 rows, through the parent table', async () => {
    await admin('POST', '/prices', { catalog: 'local', model: 'many', input: '1' });
    const { id } = await callPriced('many');
    // 12,000 rows of one moment, unlike any that a gateway wrote: each page must go on after the last row.
    await query(
      `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome, model, prompt_tokens)
       SELECT started_at, (left(id::text, 14) || '7' || lpad(to_hex(n), 3, '0') || right(id::text, 18))::uuid, team_id, key_id, provider,
              method, streamed, outcome, model, 1
       FROM request_log, generate_series(0, 4095) AS n WHERE id = $1
       ON CONFLICT DO NOTHING`,
      [id],
    );
    await query(
      `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome, model, prompt_tokens)
       SELECT started_at, (left(id::text, 24) || lpad(to_hex(n), 12, '0'))::uuid, team_id, key_id, provider, method, streamed,
              outcome, model, 1
       FROM request_log, generate_series(0, 7904) AS n WHERE id = $1`,
      [id],
    );
    // In one request, however long it takes.
    const prices = priced.gateway.gateway.app.get(PricesService);
    const patience = jest.replaceProperty(prices, 'repriceMs', 600_000);
    const reprice = admin('POST', '/prices/reprice', { ...range(), model: 'many', dry_run: false });
    expect(await reprice.finally(() => patience.restore())).toMatchObject({
      rows: 12_001,
      changed: 12_000,
      cost_before: '1.000000000',
      cost_after: '1.012000000',
    });
    const commits = await query<{ rows: number }>(
      "SELECT count(*)::int AS rows FROM request_log WHERE model = 'many' AND repaired_at IS NOT NULL GROUP BY xmin ORDER BY 1",
    );
    // The first row, whose cost did not change, is in one of the three batches.
    expect(commits).toHaveLength(3);
    expect(commits.reduce((sum, { rows }) => sum + rows, 0)).toBe(12_000);
    expect(Math.max(...commits.map(({ rows }) => rows))).toBe(5_000);
  });

  it('takes several requests if it takes long, which do together what one does', async () => {
    await admin('POST', '/prices', { catalog: 'local', model: 'long', input: '1' });
    const { id } = await callPriced('long');
    // Thousands of rows of one moment, and one two hours earlier, which may be the day before.
    await createDays(priced.gateway.database, Date.now() - 7_200_000);
    await query(
      `INSERT INTO request_log (started_at, id, team_id, key_id, provider, method, streamed, outcome, model, prompt_tokens)
       SELECT started_at - CASE n WHEN 0 THEN interval '2 hours' ELSE interval '0' END, gen_random_uuid(), team_id, key_id, provider,
              method, streamed, outcome, model, 1
       FROM request_log, generate_series(0, 11999) AS n WHERE id = $1`,
      [id],
    );
    const prices = priced.gateway.gateway.app.get(PricesService);
    prices.repriceMs = 0;
    const sums = { requests: 0, rows: 0, changed: 0 };
    let cursor: string | null | undefined;
    while (cursor !== null) {
      const body = { ...range(), from: '1990-01-01T00:00:00Z', model: 'long', ...(cursor && { cursor }) };
      const part = await admin<{ rows: number; changed: number; next_cursor: string | null }>(
        'POST',
        '/prices/reprice',
        body,
      );
      sums.requests++;
      sums.rows += part.rows;
      sums.changed += part.changed;
      expect(part.rows).toBeLessThanOrEqual(5_000);
      cursor = part.next_cursor;
    }
    prices.repriceMs = 10_000;
    expect(sums).toEqual({ requests: expect.any(Number) as number, rows: 12_001, changed: 12_000 });
    expect(sums.requests).toBeGreaterThan(3);
    expect(await query("SELECT FROM request_log WHERE model = 'long' AND cost_usd IS NULL")).toEqual([]);
    // Each request is in the audit log, from where it went on.
    const { data } = await admin<{ data: object[] }>('GET', '/audit?action=repriced&limit=500');
    expect(data.length).toBeGreaterThanOrEqual(sums.requests);
    for (const foreign of ['x', Buffer.from('0 x').toString('base64url')])
      expect(await send('POST', '/reprice', { ...range(), cursor: foreign })).toMatchObject({ status: 400 });
  });

  it('runs once at a time', async () => {
    const restore = setPatience(0.1, 'the lock of a repricing');
    const other = new pg.Client({ connectionString: priced.gateway.database.url });
    await other.connect();
    await other.query('SELECT pg_advisory_lock($1)', [ADVISORY_LOCKS.repricing]);
    const body = { ...range(), dry_run: true };
    expect((await send('POST', '/reprice', body)).status).toBe(409);
    restore();
    await other.end();
    expect((await send('POST', '/reprice', body)).status).toBe(200);
  });
});
