import { describeInBrowser, fitsWindow, openPage, seriousViolations, settled, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';

const PAGES = ['keys', 'teams', 'providers', 'prices', 'audit', 'system'];
const SCHEMES = ['light', 'dark'] as const;

describeInBrowser('the pages for administration of the console', () => {
  let gateway: ConsoleGateway;
  let key: string;

  beforeAll(async () => {
    gateway = await startConsoleGateway((database) => seedConsole(database.url, { rows: 20_000 }));
    const { admin, database } = gateway;
    await seedProvidersAndLimits(database.url, admin);
    for (const [catalog, model, input, output] of [
      ['openai', 'gpt-5', '1.25', '10'],
      ['openai', 'gpt-5-mini', '0.25', '2'],
      ['anthropic', 'claude-sonnet-4-5*', '3', '15'],
      ['mistral', 'mistral-small*', '0.1', '0.3'],
    ])
      await admin('POST', '/admin/v1/prices', { catalog, model, input, output });
    const body = { team: 'search', name: 'ci-tests', budgets: [{ usd: '50.00', period: 'month' }] };
    key = (await admin<{ key: string }>('POST', '/admin/v1/keys', body)).key;
  });
  afterAll(() => gateway.stop());

  for (const colorScheme of SCHEMES) {
    it(`are accessible and without problems in ${colorScheme} colours`, async () => {
      const { page, context, take } = await signedIn(gateway.url, '/keys', { colorScheme });
      for (const path of PAGES) {
        await page.goto(`${gateway.url}/console/${path}`);
        await settled(page);
        expect({ path, found: await seriousViolations(page) }).toEqual({ path, found: [] });
        expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
      }
      expect(take()).toEqual([]);
      await context.close();
    });

    it(`have drawers and forms that are accessible in ${colorScheme} colours`, async () => {
      const { page, context, take } = await signedIn(gateway.url, '/keys', { colorScheme });
      const { id } = await gateway.admin<{ id: string }>('GET', '/admin/v1/teams/search');
      const { data } = await gateway.admin<{ data: { id: string }[] }>('GET', '/admin/v1/keys?name=ci-tests');
      for (const path of [
        `keys?key=${data[0]!.id}`,
        'keys?new=1',
        'keys?find=1',
        `teams?open=${id}`,
        'teams?new=1',
        'providers?open=openai',
        'providers?new=1',
        'prices?new=1',
        'prices?reprice=1',
      ]) {
        await page.goto(`${gateway.url}/console/${path}`);
        await settled(page);
        await page.getByRole('dialog').waitFor();
        expect({ path, found: await seriousViolations(page) }).toEqual({ path, found: [] });
      }
      expect(take()).toEqual([]);
      await context.close();
    });
  }

  it('fit a window of 320 pixels', async () => {
    const viewport = { width: 320, height: 700 };
    const { page, context, take } = await signedIn(gateway.url, '/keys', { viewport });
    for (const path of [...PAGES, 'keys?new=1', 'providers?open=openai', 'prices?new=1']) {
      await page.goto(`${gateway.url}/console/${path}`);
      await settled(page);
      await fitsWindow(page);
    }
    expect(take()).toEqual([]);
    await context.close();
  });

  it('shows who changed what, with the values before and after', async () => {
    await gateway.admin('PATCH', '/admin/v1/teams/fraud', { disabled: true });
    const { page, context, take } = await signedIn(gateway.url, '/audit?subject_name=fraud');
    const entry = page.getByRole('list', { name: 'Changes' }).getByRole('listitem').first();
    await entry.getByText('admin-token').waitFor();
    expect(await entry.locator('del').innerText()).toContain('false');
    expect(await entry.locator('ins').innerText()).toContain('true');
    expect(take()).toEqual([]);
    await context.close();
  });

  it('shows the state of the system, and no value of a setting', async () => {
    const { page, context, take } = await signedIn(gateway.url, '/system');
    await settled(page);
    const { days } = await gateway.database.find<{ days: string }>(
      `SELECT count(*)::text AS days FROM pg_inherits WHERE inhparent = 'request_log'::regclass`,
    );
    await page.getByText(`All ${days} days`).first().waitFor();
    await page.getByRole('heading', { name: '1 process' }).waitFor();
    const text = await page.locator('main').innerText();
    expect(text).toContain('DATABASE_URL');
    expect(text).not.toContain(gateway.database.url);
    expect(text).not.toContain('test-admin-token');
    expect(take()).toEqual([]);
    await context.close();
  });

  it('shows a team its budgets and spend as SQL finds them', async () => {
    const to = new Date();
    to.setUTCHours(0, 0, 0, 0);
    const from = new Date(to.getTime() - 20 * 86_400_000);
    const { page, context, take } = await signedIn(
      gateway.url,
      `/teams?from=${from.toISOString()}&to=${to.toISOString()}`,
    );
    await settled(page);
    const sums = await gateway.database.query<{ name: string; cost: string }>(
      `SELECT t.name, sum(r.cost_usd)::text AS cost FROM request_log r JOIN team t ON t.id = r.team_id
       WHERE r.started_at >= $1 AND r.started_at < $2 GROUP BY t.name`,
      [from, to],
    );
    expect(sums).toHaveLength(12);
    for (const { name, cost } of sums) {
      const shown = page
        .getByRole('row')
        .filter({ has: page.getByText(name, { exact: true }) })
        .locator('[data-exact^="$"]')
        .first();
      expect({ name, cost: await shown.getAttribute('data-exact') }).toEqual({
        name,
        cost: `$${Number(cost)
          .toFixed(9)
          .replace(/0{1,7}$/, '')}`,
      });
    }
    expect(take()).toEqual([]);
    await context.close();
  });

  for (const colorScheme of SCHEMES) {
    it(`shows the holder of a key what it used, in ${colorScheme} colours, and stores nothing`, async () => {
      const { page, context, take } = await openPage(gateway.url, { colorScheme });
      await page.goto(`${gateway.url}/console/key`);
      await page.getByLabel('Gateway key').first().fill('ptn_wrong');
      await page.getByRole('button', { name: 'Show', exact: true }).click();
      await page.getByRole('alert').waitFor();
      await page.getByLabel('Gateway key').first().fill(key);
      await page.getByRole('button', { name: 'Show', exact: true }).click();
      await page.getByRole('heading', { name: 'search / ci-tests' }).waitFor();
      await page.getByText('$0.00 of $50.00').waitFor();
      expect(await seriousViolations(page)).toEqual([]);
      const rest = await page.evaluate<string>(
        `document.documentElement.outerHTML + [...document.querySelectorAll('input')].map((input) => input.value) +
          location.href + document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })`,
      );
      expect(rest).not.toContain(key);
      expect(take(/401/)).toEqual([]);
      await context.close();
    });
  }
});
