import type { Page } from 'playwright-core';
import { ADMIN_TOKEN } from '../../support/gateway.js';
import { openPage, settled, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { callWith } from '../model-provider.js';
import { insertRow } from '../../request-log/rows.js';

/** The list of requests and what it says of one. */
export function requestFlows(gateway: ConsoleGateway): void {
  it('shows new calls by itself while Live is on, which it is not at first', async () => {
    const { key } = await gateway.admin<{ key: string }>('POST', '/admin/v1/keys', {
      team: 'checkout',
      name: 'live',
    });
    const { page, done } = await signedIn(gateway.url, '/requests?model=priced-model&range=1h');
    await settled(page);
    const rows = page.getByRole('table', { name: 'Requests' }).locator('tbody tr');
    const before = await rows.count();
    expect(await page.getByRole('switch', { name: 'Live' }).isChecked()).toBe(false);
    await page.getByRole('switch', { name: 'Live' }).click({ force: true });
    await page.waitForURL((url) => url.searchParams.get('live') === '1');
    expect(await callWith(gateway.url, key)).toBe(200);
    await rows.nth(before).waitFor();
    expect(await rows.first().locator('td[data-label="Team / key"]').textContent()).toBe('checkout / live');
    await page.getByRole('switch', { name: 'Live' }).click({ force: true });
    await page.waitForURL((url) => !url.searchParams.has('live'));
    await done();
  });

  it('tells how the cost of a call came about, in a drawer that Escape closes', async () => {
    const call = await until(async () => {
      const [found] = await gateway.database.query<{ id: string; cost: string }>(
        `SELECT id, trim_scale(cost_usd)::text AS cost FROM request_log
         WHERE model = 'priced-model' AND cost_usd IS NOT NULL ORDER BY started_at LIMIT 1`,
      );
      return found;
    });
    const { page, done } = await signedIn(gateway.url, `/requests?range=1h&id=${call.id}`);
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('heading', { name: 'Timeline' }).waitFor();
    const lines = await until(async () => {
      const rows = await drawer.getByRole('table', { name: 'Tokens and cost' }).getByRole('row').all();
      const texts = await Promise.all(rows.map(async (row) => (await row.innerText()).split(/\s*\t\s*/)));
      return texts[1]?.[2] === '–' ? undefined : texts;
    });
    // 1,000 and 100 tokens at $1,000 per million.
    expect(lines.slice(1).map((cells) => cells.join(' '))).toEqual([
      'Uncached input 1,000 $1,000.00 $1.00',
      'Output 100 $1,000.00 $0.10',
      'Total 1,100 $1.10',
    ]);
    expect(Number(call.cost)).toBe(1.1);
    expect(await drawer.getByText(call.id).count()).toBe(1);
    await page.keyboard.press('Escape');
    await page.waitForURL((url) => !url.searchParams.has('id'));
    await done();
  });

  it('shows the price that the cost of a call came from, whatever applies to its time now', async () => {
    const amounts = { catalog: 'local', model: 'once-priced', input: '1000', output: '1000' };
    const { id: priceId } = await gateway.admin<{ id: string }>('POST', '/admin/v1/prices', amounts);
    const id = await insertRow(gateway.database, new Date(), {
      ...{ provider: 'local', model: 'once-priced', prompt_tokens: 1_000, completion_tokens: 100 },
      ...{ cost_usd: '1.1', price_id: priceId },
    });
    const yesterday = new Date(Date.now() - 86_400_000).toISOString();
    await gateway.admin('POST', '/admin/v1/prices', { ...amounts, input: '5', effective_from: yesterday });
    const { page, done } = await signedIn(gateway.url, `/requests?range=1h&id=${id}`);
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('cell', { name: '$1,000.00' }).first().waitFor();
    await drawer.getByText('Price of once-priced in local (own price).').waitFor();
    await gateway.admin('PATCH', `/admin/v1/prices/${priceId}`, { input: '7' });
    await page.reload();
    await drawer.getByText('The price of once-priced in local was changed since').waitFor();
    expect(await drawer.getByRole('cell', { name: '$7.00' }).count()).toBe(0);
    await gateway.admin('DELETE', `/admin/v1/prices/${priceId}`);
    await page.reload();
    await drawer.getByText('The price at that time was removed since').waitFor();
    await done(/404/);
    // It has neither a team nor a price that other flows find.
    await gateway.database.query('DELETE FROM request_log WHERE id = $1', [id]);
  });

  it('is a table on a small laptop, as usage is, with the whole name of a key beside a short team', async () => {
    await gateway.admin('POST', '/admin/v1/teams', { name: 'ab' });
    const key = { team: 'ab', name: 'notebook' };
    const { id, team_id } = await gateway.admin<{ id: string; team_id: string }>(
      'POST',
      '/admin/v1/keys',
      key,
    );
    const call = {
      team_id,
      key_id: id,
      provider: 'local',
      model: 'a-model-of-some-length',
      cost_usd: '0.000375',
    };
    await insertRow(gateway.database, new Date(), {
      ...call,
      prompt_tokens: 120_000,
      completion_tokens: 12_345,
    });
    await insertRow(gateway.database, new Date(), {
      ...call,
      status: 429,
      error_code: 'model_request_rate_limit',
    });
    const { page, done } = await signedIn(gateway.url, '/requests?range=1h&team=ab');
    await page.setViewportSize({ width: 1280, height: 800 });
    const table = page.getByRole('table', { name: 'Requests' });
    await table.getByText('notebook').first().waitFor();
    const heading = table.getByRole('columnheader', { name: 'Duration' });
    // The headings of cards are for screen readers alone.
    await until(async () => ((await heading.boundingBox())?.height ?? 0) > 10 || undefined);
    const cut = await page.evaluate<number[]>(
      `[...document.querySelectorAll('td span')].filter((part) => part.textContent === 'notebook')
        .map((part) => part.scrollWidth - part.clientWidth)`,
    );
    expect([cut.length, ...cut]).toEqual([2, 0, 0]);
    await page.goto(`${gateway.url}/console/usage?range=1h&by=team&team=ab`);
    const last = page
      .getByRole('table', { name: 'Usage by group' })
      .getByRole('columnheader', { name: 'p95' });
    await until(async () => ((await last.boundingBox())?.height ?? 0) > 10 || undefined);
    // Labels of an axis of fractions of a cent are long.
    await page.locator('.recharts-yAxis-tick-labels text').first().waitFor();
    const labels = await page.evaluate<[string, boolean][]>(
      `[...document.querySelectorAll('.recharts-yAxis-tick-labels text')].map((label) => [label.textContent,
        label.getBoundingClientRect().left >= label.closest('svg').getBoundingClientRect().left])`,
    );
    expect(Math.max(...labels.map(([text]) => text.length))).toBeGreaterThan(6);
    expect(labels.filter(([, isWhole]) => !isWhole)).toEqual([]);
    await done();
  });

  it('can be used with the keyboard alone', async () => {
    const { page, done } = await openPage(gateway.url);
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
    await done();
  });
}

async function tabTo(page: Page, isThere: () => Promise<boolean>): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab');
    if (await isThere()) return;
  }
  throw new Error('80 presses of Tab did not lead there.');
}
