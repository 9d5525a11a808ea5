import type { Locator, Page } from 'playwright-core';
import { Receiver } from '../../webhooks/receiver.js';
import { inColours, openAfresh, openPage, settled, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { picture, WRITES_IMAGES } from '../picture.js';

const DAY_MS = 86_400_000;
const PAGES: Record<string, string> = {
  overview: '',
  usage: 'usage?then=model',
  requests: 'requests',
  keys: 'keys',
  teams: 'teams',
  limits: 'limits',
  providers: 'providers',
  prices: 'prices',
  access: 'access',
  webhooks: 'webhooks',
  sinks: 'sinks',
  audit: 'audit',
  system: 'system',
};

const TOKENS: [name: string, role: string, teams?: string[]][] = [
  ['prometheus', 'metrics'],
  ['finance-report', 'viewer'],
  ['ana.silva', 'lead', ['search']],
  ['terraform', 'admin'],
];

/** The pages that the docs show. */
export function documented(gateway: ConsoleGateway): void {
  // For the pictures alone: other flows begin with none.
  if (WRITES_IMAGES) {
    const receiver = new Receiver();
    beforeAll(async () => {
      const { url } = await receiver.listen();
      const post = (path: string, body: object) =>
        gateway.admin<{ id: string }>('POST', `/admin/v1/${path}`, body);
      for (const [name, role, teams] of TOKENS) await post('tokens', { name, role, ...(teams && { teams }) });
      const alerts = await post('webhooks', { url, events: ['budget.exhausted', 'provider.failing'] });
      await post(`webhooks/${alerts.id}/test`, {});
      await post('webhooks', { url, events: ['key.expiring', 'price.missing'] });
      await post('sinks', { name: 'warehouse', kind: 'http', url, from: new Date().toISOString() });
    });
    afterAll(() => receiver.close());
  }

  it('each has its name as the one heading of the first level', async () => {
    const { page, done } = await signedIn(gateway.url);
    for (const [name, path] of Object.entries(PAGES)) {
      await openAfresh(page, path);
      await settled(page);
      await drawn(page);
      const heading = page.getByRole('heading', { level: 1 });
      expect([name, await heading.count()]).toEqual([name, 1]);
      expect((await heading.innerText()).toLowerCase()).toMatch(new RegExp(`^${name}`));
      await picture(page, name);
    }
    await openAfresh(page, '');
    await inColours(page, 'dark');
    await settled(page);
    await drawn(page);
    await picture(page, 'overview-dark');
    await done();
  });

  it('shows how the cost of a request came about', async () => {
    const { page, done } = await signedIn(gateway.url, '/requests?model=gpt-5-mini&status=200');
    await settled(page);
    await page.getByRole('table', { name: 'Requests' }).locator('tbody tr').first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Price of gpt-5-mini in openai').waitFor();
    const parts = await amounts(dialog.getByRole('table').locator('tbody tr td:last-child'));
    const [total] = await amounts(dialog.locator('tfoot [data-exact]'));
    const difference = parts.reduce((sum, part) => sum + part, 0n) - total!;
    // The parts are rounded to three digits, each.
    expect(Math.abs(Number(difference))).toBeLessThan(Number(total) / 100);
    await picture(page, 'request');
    await done();
  });

  it('shows holders of a key what it used', async () => {
    const { page, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console/key`);
    await page.getByLabel('Gateway key').first().fill(gateway.seeded.secret);
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('heading', { name: 'search / production' }).waitFor();
    await settled(page);
    await drawn(page);
    await page.getByText('Team: Budget per month').waitFor();
    await picture(page, 'key');
    await done();
  });

  it('shows the same sums of the same time on every page', async () => {
    const to = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS);
    const range = `from=${new Date(to.getTime() - 14 * DAY_MS).toISOString()}&to=${to.toISOString()}&tz=UTC`;
    const { page, done } = await signedIn(gateway.url, `/?${range}`);
    await settled(page);
    const card = (name: string) =>
      amounts(page.getByRole('region', { name, exact: true }).locator('[data-exact]'));
    const [[cost], [calls]] = await Promise.all([card('Cost'), card('Calls')]);
    const show = async (path: string) => {
      await page.goto(`${gateway.url}/console${path}${range}`);
      await settled(page);
    };
    const sumOf = async (label: string) =>
      (await amounts(page.locator(`tbody td[data-label^="${label}"] [data-exact]`))).reduce(
        (sum, amount) => sum + amount,
        0n,
      );
    await show('/usage?by=provider&');
    expect(await amounts(page.locator('tfoot [data-exact]').first())).toEqual([cost]);
    expect(await sumOf('Cost')).toBe(cost);
    await show('/teams?');
    expect([await sumOf('Cost'), await sumOf('Calls')]).toEqual([cost, calls]);
    await show('/keys?');
    const rows = page.getByRole('table', { name: 'Gateway keys' }).locator('tbody tr');
    await page.getByRole('button', { name: 'Load more' }).click();
    const { keys } = await gateway.database.find<{ keys: number }>(
      'SELECT count(*)::int AS keys FROM gateway_key',
    );
    await until(async () => (await rows.count()) === keys);
    expect([await sumOf('Cost'), await sumOf('Calls')]).toEqual([cost, calls]);
    await show('/providers?');
    expect(await sumOf('Calls')).toBe(calls);
    await show('/requests?');
    const counted = await page.getByRole('heading', { name: /calls, .* failed$/ }).innerText();
    expect(BigInt(counted.replace(/ calls.*/, '').replaceAll(',', '')) * 1_000_000_000n).toBe(calls);
    await done();
  });
}

/** Waits until the charts of the page have their bars. */
async function drawn(page: Page): Promise<void> {
  if ((await page.getByRole('img', { name: / by |over time/ }).count()) > 0)
    await page.locator('.recharts-bar-rectangle').filter({ visible: true }).first().waitFor();
}

/** Amounts in billionths: exact ones where they are, else those that are shown. */
async function amounts(cells: Locator): Promise<bigint[]> {
  const texts = await Promise.all(
    (await cells.all()).map(async (cell) => (await cell.getAttribute('data-exact')) ?? cell.innerText()),
  );
  return texts.map((text) => {
    const [whole = '', fraction = ''] = text.replace(/[$,]/g, '').split('.');
    return BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
  });
}
