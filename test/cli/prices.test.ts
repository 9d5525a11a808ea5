import { insertRow } from '../request-log/rows.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

let database: TestDatabase;
let gateway: TestGateway;
beforeAll(async () => {
  database = await createDatabase();
  gateway = await startTestGateway({}, database);
});
afterAll(async () => {
  await gateway.stop();
  await database.drop();
});

const remote = (line: string) =>
  runHere(line.split(' '), { POSTERN_URL: gateway.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });
const json = async <T>(line: string): Promise<T> => {
  const { code, stdout, stderr } = await remote(`${line} --json`);
  expect([code, stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as T;
};

describe('postern prices', () => {
  it('sets, changes, shows, explains and removes a price', async () => {
    const amounts = '--input 0.20 --cached-input 0.05 --output 0.60 --effective-from 2026-01-31';
    const { id } = await json<{ id: string }>(`prices set mine llama-3* ${amounts}`);
    expect(await gateway.admin('GET', '/prices?source=custom')).toMatchObject({
      data: [{ id, catalog: 'mine', model: 'llama-3*', effective_from: '2026-01-31T00:00:00.000Z' }],
    });
    expect(await json(`prices update ${id} --output 0.50 --note cheaper`)).toMatchObject({ note: 'cheaper' });
    const listed = await remote('prices list --catalog mine --source custom');
    expect(listed.stdout).toMatch(
      new RegExp(`^mine +llama-3\\* +0\\.20* +0\\.050* +0\\.50* +- +2026-01-31 00:00 +custom +${id}$`, 'm'),
    );
    expect(await json('prices resolve mine llama-3.3')).toMatchObject({ price: { id }, model: 'llama-3.3' });
    expect((await remote('prices resolve mine llama-3.3')).stdout).toMatch(/^output +0\.50*$/m);
    expect(await json('prices resolve mine llama-3.3 --at 2025-12-31')).toMatchObject({ price: null });
    const none = await remote(`prices update ${id}`);
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('error: nothing to change')]);
    expect((await remote('prices set mine llama-3* --input many')).stderr).toMatch(
      /^error: --input must be an amount/,
    );
    expect((await remote('prices set mine llama-4')).stderr).toBe(
      'error: give at least one of input, output, per_call and extra; "0" for what is free\n',
    );
    expect((await remote(`prices remove ${id}`)).stdout).toBe(`Removed price ${id}.\n`);
    expect(await json('prices list --source custom')).toMatchObject({ data: [] });
  });

  it('sets prices of units and of tiers', async () => {
    const tiers = '--tier size=1024x1536,images=63 --tier service_tier=batch,factor=0.5,cached_factor=1';
    const { id } = await json<{ id: string }>(
      `prices set mine image-* --unit images=40 --unit web_searches=10 --input 2 ${tiers} --tier between=16:30:00-00:30:00,input=1`,
    );
    const stored = {
      extra: { images: '40', web_searches: '10' },
      tiers: [
        { between: ['16:30:00', '00:30:00'], input: '1' },
        { size: '1024x1536', extra: { images: '63' } },
        { service_tier: 'batch', factor: '0.5', cached_factor: '1' },
      ],
    };
    expect(await gateway.admin('GET', '/prices?catalog=mine')).toMatchObject({ data: [{ id, ...stored }] });
    const columns = await database.query('SELECT extra, tiers, units, unit_tiers FROM price WHERE id = $1', [
      id,
    ]);
    expect(columns).toEqual([
      {
        extra: { web_searches: '10' },
        tiers: stored.tiers.slice(0, 1),
        units: { images: '40' },
        unit_tiers: stored.tiers.slice(1),
      },
    ]);
    const shown = await remote('prices resolve mine image-1');
    expect(shown.stdout).toMatch(/^images +40$/m);
    expect(shown.stdout).toContain('"factor":"0.5"');
    const rejected = async (line: string) => (await remote(`prices set mine x ${line}`)).stderr;
    expect(await rejected('--unit picture=1')).toMatch(/^error: --unit: picture is no unit; units are /);
    expect(await rejected('--unit images')).toMatch(/^error: --unit must be a name and a value/);
    expect(await rejected('--input 1 --tier colour=red')).toMatch(/^error: --tier: colour is no member/);
    expect(await rejected('--input 1 --tier factor=0.5')).toContain(
      'must have above, between, service_tier, size or quality',
    );
    expect(await rejected('--input 1 --tier service_tier=batch,factor=0.5,input=1')).toContain(
      'must have prices or a factor',
    );
    expect(await rejected('--input 1 --tier service_tier=batch,cached_factor=1')).toContain(
      'must have a factor beside',
    );
    expect(
      await json(`prices update ${id} --unit images=50 --unit web_searches=none --tier none`),
    ).toMatchObject({
      extra: { images: '50' },
      tiers: null,
    });
    await remote(`prices remove ${id}`);
  });

  it('says that a price is for no provider there is', async () => {
    const note = /^No provider is called typo or has that price list, .* Providers: own\.$/m;
    await gateway.admin('POST', '/providers', {
      name: 'own',
      url: 'http://127.0.0.1:9',
      secret: null,
      catalog: 'shared',
    });
    expect((await remote('prices set typo x --input 1')).stdout).toMatch(note);
    for (const catalog of ['own', 'shared'])
      expect((await remote(`prices set ${catalog} x --input 1`)).stdout).toMatch(
        /^Set the price of .*\nCalls of the last 7 days .*\n {2}\S*postern prices reprice --from 30d --model x --dry-run\n$/,
      );
    const pattern = await remote('prices set own x* --input 1');
    expect(pattern.stdout).toMatch(/prices reprice --from 30d --dry-run\n$/);
    for (const { id } of (await json<{ data: { id: string }[] }>('prices list --source custom')).data)
      await remote(`prices remove ${id}`);
  });

  it('computes stored costs again, and shows them in usage', async () => {
    await insertRow(database, new Date(), {
      prompt_tokens: 1_000_000,
      completion_tokens: 0,
      provider: 'paid',
      model: 'm',
    });
    await json('prices set paid m --input 2.50');
    expect((await remote('prices list --catalog paid')).stdout).toMatch(/^paid +m .* always +custom /m);
    const dry = await remote('prices reprice --from 1h --dry-run');
    expect(dry.stdout).toMatch(/^Would change 1 of 1 calls: 0\.0+ USD before, 2\.50* USD after\.\n$/);
    expect(await json('prices reprice --from 1h --model m')).toMatchObject({ changed: 1, dry_run: false });
    const usage = await remote('usage --group-by model --sort cost --from 1h --tz UTC');
    expect(usage.stdout).toMatch(/^MODEL .* COST \$ /);
    expect(usage.stdout).toMatch(/^m +1 +0 +1,000,000 +1,000,000 +0 +2\.50 /m);
    expect((await remote('prices reprice')).stderr).toBe('error: --from must be given, for example 7d\n');
  });

  it('works on the database without a gateway too', async () => {
    const env = { DATABASE_URL: database.url };
    const args = ['prices', 'set', 'local', 'x', '--per-call', '0.01', '--json'];
    expect(await runHere(args, env)).toMatchObject({ code: 0, stderr: '' });
    expect(await json('prices list --catalog local')).toMatchObject({ data: [{ model: 'x' }] });
    const missing = await runHere(['prices', 'missing'], env);
    expect(missing).toMatchObject({ code: 0, stderr: '' });
  });
});
