import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import {
  describeInBrowser,
  fitsWindow,
  openPage,
  seriousViolations,
  settled,
  signedIn,
  signIn,
} from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';

const DAY_MS = 86_400_000;
const PATHS = ['/', '/usage?then=model', '/requests', '/limits'];

describeInBrowser('the console, with three months of calls', () => {
  let gateway: ConsoleGateway;
  beforeAll(async () => {
    gateway = await startConsoleGateway((database) => seedConsole(database.url));
    await seedProvidersAndLimits(gateway.database.url, gateway.admin);
  });
  afterAll(() => gateway.stop());

  /** The last 14 whole UTC days, for figures that stay the same. */
  const to = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS);
  const from = new Date(to.getTime() - 14 * DAY_MS);
  const range = `from=${from.toISOString()}&to=${to.toISOString()}&tz=UTC`;
  const sums = async (by: string, where = 'true') =>
    gateway.database.query<Record<string, string>>(
      `SELECT ${by} AS name, count(*)::text AS calls, sum(cost_usd)::text AS cost, sum(prompt_tokens + completion_tokens)::text AS tokens,
         sum(completion_tokens)::text AS output, count(*) FILTER (WHERE status >= 400 OR outcome = 'upstream_timeout')::text AS errors
       FROM request_log JOIN team ON team.id = team_id WHERE started_at >= $1 AND started_at < $2 AND ${where} GROUP BY 1 ORDER BY sum(cost_usd) DESC NULLS LAST`,
      [from, to],
    );

  it('shows the figures of the overview as SQL has them', async () => {
    const { page, take } = await signedIn(gateway.url, `/?${range}`);
    await settled(page);
    const [total] = await sums("'all'");
    expect(await exactOf(page, 'Cost')).toBe(usd(total!.cost!));
    expect(await exactOf(page, 'Calls')).toBe(grouped(total!.calls!));
    expect(await exactOf(page, 'Tokens')).toBe(grouped(total!.tokens!));
    expect(await exactOf(page, 'Error rate')).toBe(total!.errors);
    const teams = await sums('team.name');
    const shown = await page.getByRole('list', { name: 'Top teams' }).getByRole('listitem').allInnerTexts();
    expect(shown.map((text) => text.split('\n')[0])).toEqual(teams.slice(0, 6).map(({ name }) => name));
    expect(take()).toEqual([]);
  });

  it('shows usage by model as SQL has it, to the last digit, and every model', async () => {
    const { page, take } = await signedIn(gateway.url, `/usage?by=model&${range}`);
    await settled(page);
    const models = await sums('model');
    const table = page.getByRole('table', { name: 'Usage by group' });
    const cells = async (label: string) => {
      const found = await table.locator(`tbody td[data-label="${label}"]`).all();
      return Promise.all(
        found.map(async (cell) => {
          const exact = cell.locator('[data-exact]');
          return (await exact.count()) > 0 ? exact.getAttribute('data-exact') : cell.innerText();
        }),
      );
    };
    expect(await cells('Model')).toEqual(models.map(({ name }) => name));
    expect(await cells('Cost')).toEqual(models.map(({ cost }) => (cost === null ? '–' : usd(cost!))));
    expect(await cells('Calls')).toEqual(models.map(({ calls }) => grouped(calls!)));
    expect(await cells('Output')).toEqual(models.map(({ output }) => grouped(output!)));
    const [total] = await sums("'all'");
    expect(await table.locator('tfoot [data-exact]').first().getAttribute('data-exact')).toBe(
      usd(total!.cost!),
    );
    expect(take()).toEqual([]);
  });

  it('adds up days of a time zone that is half an hour off', async () => {
    const { page, take } = await signedIn(gateway.url, '/usage?range=7d&metric=calls', {
      timezoneId: 'Asia/Kolkata',
    });
    await settled(page);
    await page.getByRole('switch', { name: 'Show as table' }).click();
    const table = page.getByRole('table', { name: 'Calls by team and day' });
    const rows = await table.locator('tbody tr').all();
    const shown = await Promise.all(
      rows.map(async (row) => {
        const values = await row.locator('td').allInnerTexts();
        return values.reduce((sum, text) => sum + Number(text.replaceAll(',', '')), 0);
      }),
    );
    const days = await gateway.database.query<{ calls: number }>(
      `SELECT count(*)::int AS calls FROM request_log
       WHERE started_at >= date_trunc('day', now() AT TIME ZONE 'Asia/Kolkata') AT TIME ZONE 'Asia/Kolkata' - interval '6 days'
       GROUP BY date_trunc('day', started_at AT TIME ZONE 'Asia/Kolkata') ORDER BY date_trunc('day', started_at AT TIME ZONE 'Asia/Kolkata')`,
    );
    expect(shown).toEqual(days.map(({ calls }) => calls));
    expect(take()).toEqual([]);
  });

  it('lists the requests that a filter leaves, and all of them over its pages', async () => {
    const { page, take } = await signedIn(gateway.url, `/requests?status=429&${range}`);
    await settled(page);
    const expected = await gateway.database.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM request_log WHERE status = 429 AND started_at >= $1 AND started_at < $2',
      [from, to],
    );
    const rows = page.getByRole('table', { name: 'Requests' }).locator('tbody tr');
    const more = page.getByRole('button', { name: 'Load more' });
    while (await more.isVisible()) {
      const before = await rows.count();
      await more.click();
      await eventually(async () => (await rows.count()) > before);
    }
    expect(await rows.count()).toBe(expected[0]!.n);
    expect(new Set(await rows.locator('td[data-label="Result"]').allInnerTexts())).toEqual(new Set(['429']));
    await page.getByRole('button', { name: 'Remove filter Status: 429' }).click();
    await page.waitForURL((url) => !url.searchParams.has('status'));
    await page.goBack();
    await page.waitForURL((url) => url.searchParams.get('status') === '429');
    expect(take()).toEqual([]);
  });

  it('zooms in where the chart is dragged over', async () => {
    const { page, take } = await signedIn(gateway.url, `/?${range}`);
    await settled(page);
    const chart = page.getByRole('img', { name: 'Cost by team and day' });
    await chart.locator('.recharts-bar-rectangle').first().waitFor();
    const box = (await chart.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.4, box.y + 80);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 80, { steps: 5 });
    await page.mouse.move(box.x + box.width * 0.6, box.y + 80, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL((url) => url.searchParams.get('from') !== from.toISOString());
    const address = new URL(page.url());
    const [start, end] = ['from', 'to'].map((name) => Date.parse(address.searchParams.get(name)!));
    expect(start! > from.getTime() && end! < to.getTime()).toBe(true);
    expect([start! % DAY_MS, end! % DAY_MS]).toEqual([0, 0]);
    expect(take()).toEqual([]);
  });

  it('shows a name that is markup as text', async () => {
    const { page, take } = await signedIn(gateway.url, `/usage?by=team&${range}`);
    await settled(page);
    expect(await page.getByRole('link', { name: '<img src=x onerror=alert(1)>' }).count()).toBe(1);
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(take()).toEqual([]);
  });

  it.each(PATHS)(
    '%s has nothing that axe finds serious, in either colour scheme, and fits 320 pixels',
    async (path) => {
      for (const colorScheme of ['light', 'dark'] as const) {
        const { page, context, take } = await signedIn(gateway.url, path, { colorScheme });
        await settled(page);
        expect([colorScheme, await seriousViolations(page)]).toEqual([colorScheme, []]);
        expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
        await page.setViewportSize({ width: 320, height: 800 });
        await settled(page);
        await fitsWindow(page);
        expect([colorScheme, await seriousViolations(page)]).toEqual([colorScheme, []]);
        expect(take()).toEqual([]);
        await context.close();
      }
    },
  );

  it('opens a request in a drawer, which has nothing serious either, and closes it with Escape', async () => {
    const { page, take } = await signedIn(gateway.url, `/requests?${range}`);
    await settled(page);
    const row = page.getByRole('table', { name: 'Requests' }).locator('tbody tr').first();
    await row.focus();
    await page.keyboard.press('Enter');
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('heading', { name: 'Timeline' }).waitFor();
    await settled(page);
    const id = new URL(page.url()).searchParams.get('id')!;
    const [call] = await gateway.database.query<{ cost: string | null; model: string }>(
      'SELECT cost_usd::text AS cost, model FROM request_log WHERE id = $1',
      [id],
    );
    expect(await drawer.getByText(id).count()).toBe(1);
    expect(await drawer.getByRole('link', { name: call!.model }).count()).toBe(1);
    expect(await seriousViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.waitForURL((url) => !url.searchParams.has('id'));
    expect(take()).toEqual([]);
  });

  it('can be used with the keyboard alone', async () => {
    const { page, take } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console/`);
    await page.getByLabel('Admin token').waitFor();
    // The field has the focus from the start.
    await page.keyboard.type(ADMIN_TOKEN);
    await page.keyboard.press('Enter');
    await settled(page);
    const focused = () => page.evaluate<string>('document.activeElement?.textContent ?? ""');
    await tabTo(page, async () => (await focused()) === 'Requests');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    await settled(page);
    await tabTo(page, () => page.evaluate<boolean>('document.activeElement?.tagName === "TR"'));
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(take()).toEqual([]);
  });
});

describeInBrowser('signing in', () => {
  let gateway: ConsoleGateway;
  beforeAll(async () => (gateway = await startConsoleGateway()));
  afterAll(() => gateway.stop());

  it('rejects a wrong token and keeps what was typed', async () => {
    const { page, take } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console/limits?state=warned`);
    await page.getByLabel('Admin token').fill('wrong-token-0123456789');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByLabel('Admin token').inputValue()).toBe('wrong-token-0123456789');
    expect(await seriousViolations(page)).toEqual([]);
    // The address that was asked for is shown after signing in.
    await signIn(page);
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor();
    expect(new URL(page.url()).searchParams.get('state')).toBe('warned');
    expect(take(/status of 401/)).toEqual([]);
  });

  it('leaves the token in no address, storage or element, and signs out for good', async () => {
    const { page, context, take } = await signedIn(gateway.url);
    await settled(page);
    const state = await page.evaluate<string>(
      `JSON.stringify([location.href, document.documentElement.outerHTML, { ...localStorage }, { ...sessionStorage }, document.cookie])`,
    );
    expect(state).not.toContain(ADMIN_TOKEN);
    const [cookie] = await context.cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    await page.getByRole('link', { name: 'Limits', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    expect(await page.getByRole('navigation').count()).toBe(0);
    const response = await fetch(`${gateway.url}/admin/v1/teams`, {
      headers: { cookie: `${cookie!.name}=${cookie!.value}` },
    });
    expect(response.status).toBe(401);
    expect(take()).toEqual([]);
  });

  it.each(PATHS)('%s says what to do next when there is nothing yet', async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, context, take } = await signedIn(gateway.url, path, { colorScheme });
      await settled(page);
      expect(await page.locator('[data-empty-state]').count()).toBeGreaterThan(0);
      expect([colorScheme, await seriousViolations(page)]).toEqual([colorScheme, []]);
      await page.setViewportSize({ width: 320, height: 800 });
      await fitsWindow(page);
      expect(take()).toEqual([]);
      await context.close();
    }
  });
});

/** The exact figure of a card of the overview. */
function exactOf(page: Page, card: string): Promise<string | null> {
  return page
    .getByRole('region', { name: card, exact: true })
    .locator('[data-exact]')
    .getAttribute('data-exact');
}

/** A decimal of Postgres as the console shows it exactly: at least two decimals, no zeros after those. */
function usd(amount: string): string {
  const [whole, fraction = ''] = amount.split('.');
  return `$${whole}.${fraction.padEnd(9, '0').replace(/0{1,7}$/, '')}`;
}

function grouped(count: string): string {
  return Number(count).toLocaleString('en-US');
}

async function tabTo(page: Page, isThere: () => Promise<boolean>): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab');
    if (await isThere()) return;
  }
  throw new Error('80 presses of Tab did not lead there.');
}
