import { CatalogService } from '../../src/pricing/catalog.service.js';
import { CostRepair } from '../../src/pricing/cost-repair.service.js';
import { LogWriter } from '../../src/request-log/writer/log-writer.js';
import { insertRow, logRow } from '../request-log/rows.js';
import { Scrape } from '../observability/scrape.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { type Priced, startPriced } from './priced-provider.js';

interface Price {
  id: string;
  source: string;
  model: string;
  version: number;
}

let priced: Priced;
beforeAll(async () => {
  priced = await startPriced();
  const { url } = priced.provider;
  const add = (name: string, catalog?: string | null) =>
    priced.gateway.admin('POST', '/providers', {
      name,
      url,
      secret: null,
      ...(catalog !== undefined && { catalog }),
    });
  await add('openai', 'openai');
  await add('claude', 'anthropic');
  await add('slow', 'mistral');
  await add('mine');
  await add('router', 'openrouter');
});
afterAll(() => priced.gateway.stop());

const admin = <T>(method: string, path: string, body?: unknown) =>
  priced.gateway.admin<T>(method, path, body);
const query = <T extends object>(text: string, values: unknown[] = []) =>
  priced.gateway.database.query<T>(text, values);
const OPENAI = {
  prompt_tokens: 1_000,
  completion_tokens: 200,
  prompt_tokens_details: { cached_tokens: 400 },
};
const repair = () => priced.gateway.gateway.app.get(CostRepair);

/** The row once it has a cost, after two passes at most: while the interval repairs, a pass does nothing. */
const repairedRow = (id: string) => {
  let passes = 0;
  return eventually(async () => {
    const row = await priced.gateway.row(id);
    if (row.cost_usd !== null) return row;
    expect(passes).toBeLessThan(2);
    if ((await repair().run(0)) !== null) passes++;
    return null;
  });
};

describe('the cost of a call', () => {
  it('comes from the catalog, which is asked once for a model', async () => {
    const row = await priced.call('openai', 'gpt-4o-mini', OPENAI);
    // 600 × 0.15 + 400 × 0.075 + 200 × 0.60 USD per million.
    expect(row).toMatchObject({ cost_usd: '0.000240000', repaired_at: null });
    const prices = await query<Price>("SELECT * FROM price WHERE model = 'gpt-4o-mini'");
    expect(prices).toMatchObject([{ id: row.price_id, source: 'catalog', catalog: 'openai' }]);
    expect(await priced.call('openai', 'gpt-4o-mini', OPENAI)).toMatchObject({ price_id: row.price_id });
    const shown = await admin(`GET`, `/requests/${row.id}`);
    expect(shown).toMatchObject({ cost_usd: '0.000240000', price_id: row.price_id, repaired_at: null });
    const exported = await fetch(`${priced.gateway.url}/admin/v1/requests/export?model=gpt-4o-mini&limit=1`, {
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    expect(JSON.parse(await exported.text())).toMatchObject({ cost_usd: '0.000240000' });
  });

  it('has cache writes of Anthropic, also those for an hour', async () => {
    const usage = {
      input_tokens: 100,
      cache_read_input_tokens: 2_000,
      cache_creation_input_tokens: 500,
      cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 200 },
      output_tokens: 50,
    };
    // 100 × 3 + 2,000 × 0.30 + 300 × 3.75 + 200 × 6 + 50 × 15 USD per million.
    expect(await priced.call('claude', 'claude-sonnet-4-5', usage)).toMatchObject({
      cost_usd: '0.003975000',
    });
  });

  it('is what the provider reports, if it is one that reports the cost in USD', async () => {
    const row = await priced.call('router', 'gpt-4o-mini', { ...OPENAI, cost: 0.00014250000000001 });
    expect(row).toMatchObject({ cost_usd: '0.000142500', price_id: null });
    expect(await priced.call('router', 'free', { ...OPENAI, cost: 0 })).toMatchObject({
      cost_usd: '0.000000000',
      price_id: null,
    });
    expect(await priced.call('router', 'grok', { ...OPENAI, cost_in_usd_ticks: 37_756_000 })).toMatchObject({
      cost_usd: '0.003775600',
    });
    expect(await priced.call('router', 'most', { ...OPENAI, cost: 9_999.999999999 })).toMatchObject({
      cost_usd: '9999.999999999',
    });
  });

  it.each([0, 0.5, 1e300])('is computed from its tokens if another provider claims %d', async (cost) => {
    expect(await priced.call('openai', 'gpt-4o-mini', { ...OPENAI, cost })).toMatchObject({
      cost_usd: '0.000240000',
      price_id: expect.any(String) as string,
    });
    expect(await priced.call('mine', 'llama', { ...OPENAI, cost })).toMatchObject({ cost_usd: null });
  });

  never.each([-1, -0.000000001, 10_000, 1e9, 1e300, '1', 'NaN', true, [], {}, null])(
    'is not %j, whoever reports it',
    async (cost) => {
      expect(await priced.call('router', 'claims-too-much', { ...OPENAI, cost })).toMatchObject({
        cost_usd: null,
        prompt_tokens: 1_000,
      });
    },
  );

  it('follows a price that changes at noon, on the two halves of one day', async () => {
    const noon = new Date(Math.floor(Date.now() / 86_400_000) * 86_400_000 - 43_200_000);
    const price = { catalog: 'mine', model: 'noon', output: '0' };
    const before = await admin<Price>('POST', '/prices', { ...price, input: '1' });
    const after = await admin<Price>('POST', '/prices', { ...price, input: '3', effective_from: noon });
    await admin('GET', '/prices/resolve?provider=mine&model=noon');
    const rows = [-43_200_000, -1, 0, 43_199_999].map((offset) =>
      logRow(noon.getTime() + offset, {
        provider: 'mine',
        model: 'noon',
        prompt_tokens: 1_000_000,
        completion_tokens: 0,
      }),
    );
    await priced.gateway.gateway.app.get(LogWriter).persist(rows, false);
    const expected = [before, before, after, after].map(({ id }, i) => [
      i < 2 ? '1.000000000' : '3.000000000',
      id,
    ]);
    const stored = () =>
      query<{ cost_usd: string; price_id: string }>(
        "SELECT cost_usd, price_id FROM request_log WHERE model = 'noon' ORDER BY started_at",
      );
    expect((await stored()).map((row) => [row.cost_usd, row.price_id])).toEqual(expected);
    const day = noon.toISOString().slice(0, 10);
    const usage = () =>
      admin<{ data: object[] }>('GET', '/usage?group_by=model&interval=day&tz=UTC&model=noon');
    expect((await usage()).data).toMatchObject([{ day, calls: 4, cost_usd: '8.000000000' }]);
    // Later prices: each half is computed again with its own.
    await admin('PATCH', `/prices/${before.id}`, { input: '2' });
    await admin('PATCH', `/prices/${after.id}`, { input: '5' });
    const range = { from: `${day}T00:00:00Z`, to: new Date(noon.getTime() + 43_200_000) };
    expect(await admin('POST', '/prices/reprice', { ...range, model: 'noon' })).toMatchObject({
      changed: 4,
      cost_before: '8.000000000',
      cost_after: '14.000000000',
    });
    expect((await usage()).data).toMatchObject([{ day, calls: 4, cost_usd: '14.000000000' }]);
  });

  never('is null without a price, without figures, and never 0', async () => {
    expect(await priced.call('mine', 'llama', OPENAI)).toMatchObject({ cost_usd: null, price_id: null });
    expect(await priced.call('openai', 'gpt-4o-mini', null)).toMatchObject({
      cost_usd: null,
      price_id: null,
    });
    expect(await priced.call('openai', 'no-such-model', OPENAI)).toMatchObject({ cost_usd: null });
  });

  it('is computed for rows from the journal as for others', async () => {
    const writer = priced.gateway.gateway.app.get(LogWriter);
    const row = logRow(Date.now(), {
      provider: 'openai',
      model: 'gpt-4o-mini',
      prompt_tokens: 1_000,
      cached_tokens: 400,
      completion_tokens: 200,
    });
    await writer.persist([row], false);
    expect(await priced.gateway.row(row.id)).toMatchObject({ cost_usd: '0.000240000' });
  });
});

describe('a model without a price', () => {
  it('is listed as missing, gets a price at once, and its earlier rows within two repairs', async () => {
    const { id } = await priced.call('mine', 'qwen-7b', OPENAI);
    const today = new Date().toISOString().slice(0, 10);
    const missing = async (range = '') =>
      (await admin<{ data: { model: string }[] }>('GET', `/prices/missing${range}`)).data.filter(
        ({ model }) => model === 'qwen-7b',
      );
    const listed = await eventually(async () => {
      const found = await missing();
      return found.length > 0 && found;
    });
    expect(listed).toEqual([
      { provider: 'mine', catalog: null, model: 'qwen-7b', first_day: today, last_day: today, calls: 1 },
    ]);
    // A month that is over has its own.
    const [start, end] = [20, 19].map((days) => new Date(Date.now() - days * 86_400_000));
    const range = `?from=${start!.toISOString()}&to=${end!.toISOString()}`;
    expect(await missing(range)).toEqual([]);
    const middle = new Date(start!.getTime() + 3_600_000);
    const old = { provider: 'mine', model: 'qwen-7b', prompt_tokens: 1 };
    await insertRow(priced.gateway.database, middle, old);
    await insertRow(priced.gateway.database, middle, old);
    const [day] = middle.toISOString().split('T');
    expect(
      await eventually(async () => {
        const found = await missing(range);
        return found.length > 0 && found;
      }),
    ).toMatchObject([{ first_day: day, last_day: day, calls: 2 }]);

    const [before] = await query<{ recorded_at: Date }>('SELECT recorded_at FROM request_log WHERE id = $1', [
      id,
    ]);
    const marker = (
      await query<{ at: Date }>("SELECT date_trunc('milliseconds', clock_timestamp()) AS at")
    )[0]!.at;
    const price = await admin<Price>('POST', '/prices', {
      catalog: 'mine',
      model: 'qwen-*',
      input: '1',
      output: '2',
    });
    // 1,000 × 1 + 200 × 2 USD per million: cached tokens cost what input costs.
    expect(await priced.call('mine', 'qwen-7b', OPENAI)).toMatchObject({
      cost_usd: '0.001400000',
      price_id: price.id,
    });
    expect((await admin<{ data: object[] }>('GET', '/prices/missing')).data).not.toContainEqual(
      expect.objectContaining({ model: 'qwen-7b' }),
    );

    const repaired = await repairedRow(id);
    expect(repaired).toMatchObject({ cost_usd: '0.001400000', price_id: price.id });
    expect(repaired.repaired_at).toEqual(repaired.recorded_at);
    expect((repaired.recorded_at as Date).getTime()).toBeGreaterThanOrEqual(marker.getTime());
    expect(before!.recorded_at.getTime()).toBeLessThanOrEqual(marker.getTime());

    // A replica that did not know the price yet may have written a row after the first repair.
    await query('UPDATE request_log SET cost_usd = NULL, price_id = NULL WHERE id = $1', [id]);
    expect(await repairedRow(id)).toMatchObject({ cost_usd: '0.001400000' });
    const noted = () => query("SELECT FROM unpriced_model WHERE model = 'qwen-7b'");
    await eventually(async () => (await noted()).length === 0);
  });

  it('is shown again to a reader who follows recorded_at, once its rows have a cost', async () => {
    const { id } = await priced.call('mine', 'phi-4', OPENAI);
    const exportAfter = async (after: string) => {
      const path = `/admin/v1/requests/export?model=phi-4&recorded_after=${encodeURIComponent(after)}`;
      const response = await fetch(`${priced.gateway.url}${path}`, {
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      });
      const lines = (await response.text()).split('\n').filter((line) => line !== '');
      return {
        rows: lines.map((line) => JSON.parse(line) as object),
        until: response.headers.get('x-recorded-until'),
      };
    };
    const first = await eventually(async () => {
      const found = await exportAfter('2020-01-01T00:00:00Z');
      return found.rows.length === 1 && found;
    });
    expect(first.rows).toMatchObject([{ id, cost_usd: null }]);
    await admin('POST', '/prices', { catalog: 'mine', model: 'phi-4', input: '1' });
    const next = await eventually(async () => {
      await repair().run(0);
      const found = await exportAfter(first.until!);
      return found.rows.length === 1 && found;
    });
    expect(next.rows).toMatchObject([{ id, cost_usd: '0.001000000' }]);
  });

  it('delays no row for long if the catalog does not answer, and is repaired when it does', async () => {
    const catalog = priced.gateway.gateway.app.get(CatalogService);
    const resolve = catalog.resolve.bind(catalog);
    let release = () => {};
    const released = new Promise<void>((done) => (release = done));
    catalog.resolve = async (...asked) => {
      await released;
      return resolve(...asked);
    };
    const restore = setPatience(1, 'prices of a batch');
    let id;
    try {
      const row = await priced.call('slow', 'mistral-large-latest', OPENAI);
      expect(row).toMatchObject({ cost_usd: null, price_id: null });
      ({ id } = row);
      const noted = () => query("SELECT FROM unpriced_model WHERE model = 'mistral-large-latest'");
      await eventually(async () => (await noted()).length === 1);
    } finally {
      restore();
      release();
      catalog.resolve = resolve;
    }
    expect(Number((await repairedRow(id)).cost_usd)).toBeGreaterThan(0);
  });
});

describe('sums', () => {
  never('of 10,000 costs are exact to the last digit, in Postgres and in the API', async () => {
    await admin('POST', '/prices', {
      catalog: 'mine',
      model: 'sum-*',
      input: '0.123457',
      cached_input: '0.061729',
      output: '7.654321',
    });
    const start = Date.now();
    let expected = 0n;
    const rows = Array.from({ length: 10_000 }, (_, i) => {
      const [prompt, cached, completion] = [
        1 + ((i * 7_919) % 200_003),
        ((i * 31) % 1_000) % (1 + ((i * 7_919) % 200_003)),
        (i * 104_729) % 9_973,
      ];
      // Pico-dollars, rounded half up to nano-dollars, by hand.
      const pico =
        BigInt(prompt - cached) * 123_457n + BigInt(cached) * 61_729n + BigInt(completion) * 7_654_321n;
      expected += pico / 1_000n + (pico % 1_000n >= 500n ? 1n : 0n);
      return logRow(start + i, {
        provider: 'mine',
        model: `sum-${i % 5}`,
        prompt_tokens: prompt,
        cached_tokens: cached,
        completion_tokens: completion,
      });
    });
    await priced.gateway.gateway.app.get(LogWriter).persist(rows, false);
    const digits = String(expected);
    const sum = `${digits.slice(0, -9)}.${digits.slice(-9)}`;
    expect(
      await query(
        "SELECT sum(cost_usd)::text AS sum, count(*)::int FROM request_log WHERE model LIKE 'sum-%'",
      ),
    ).toEqual([{ sum, count: 10_000 }]);
    const from = new Date(start).toISOString();
    const { data } = await admin<{
      data: { model: string; cost_usd: string | null; unpriced_calls: number }[];
    }>('GET', `/usage?group_by=model&provider=mine&from=${from}&limit=500`);
    const total = data
      .filter(({ model }) => model.startsWith('sum-'))
      .reduce((all, { cost_usd: cost }) => all + BigInt(cost!.replace('.', '')), 0n);
    expect(total).toBe(expected);
    const { data: all } = await admin<{ data: object[] }>('GET', '/usage?group_by=model&model=llama');
    expect(all).toMatchObject([{ cost_usd: null, unpriced_calls: 4 }]);
  });

  it('are in the metrics by provider', async () => {
    const series = (await Scrape.of(priced.gateway.url)).series;
    expect(series.get('postern_cost_usd_total{provider="openai"}')).toBeCloseTo(0.00024 * 6, 12);
    expect(series.get('postern_cost_usd_total{provider="router"}')).toBeCloseTo(10_000.0039181, 6);
    expect(series.get('postern_unpriced_calls_total{provider="openai"}')).toBe(1);
    expect(series.get('postern_unpriced_calls_total{provider="mine"}')).toBe(6);
  });
});
