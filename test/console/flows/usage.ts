import type { Page } from 'playwright-core';
import { settled, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';

/** What the headings of the table of usage sort by, in SQL. */
const HEADINGS = {
  Cost: 'coalesce(sum(cost_usd), -1)',
  Calls: 'count(*)',
  Errors: `count(*) FILTER (WHERE status >= 400 OR outcome NOT IN ('completed', 'client_aborted'))`,
  'Cached input': 'coalesce(sum(cached_tokens), 0)',
  Output: 'coalesce(sum(completion_tokens), 0)',
} as const;

/** The table of usage: its headings sort, and what it names leads to what it consists of. */
export function usageFlows(gateway: ConsoleGateway): void {
  const to = new Date();
  to.setUTCMinutes(0, 0, 0);
  const from = new Date(to.getTime() - 60 * 86_400_000);
  const range = `from=${from.toISOString()}&to=${to.toISOString()}`;
  const table = (page: Page) => page.getByRole('table', { name: 'Usage by group' });
  const names = async (page: Page, label: string) => {
    await settled(page);
    return (await table(page).locator(`tbody td[data-label="${label}"]`).allInnerTexts()).map((text) =>
      text.trim(),
    );
  };
  const parameters = (page: Page) => new URL(page.url()).searchParams;
  const teamsBy = async (order: string) =>
    (
      await gateway.database.query<{ name: string; by: string }>(
        `SELECT t.name, (${order})::text AS by FROM request_log r JOIN team t ON t.id = r.team_id
         WHERE started_at >= $1 AND started_at < $2 GROUP BY t.name ORDER BY ${order} DESC`,
        [from, to],
      )
    ).map(({ name, by }) => [name, by] as const);

  it.each(Object.entries(HEADINGS))(
    'a click on %s puts the largest first, as SQL does',
    async (heading, order) => {
      const { page, done } = await signedIn(
        gateway.url,
        `/usage?sort=${heading === 'Cost' ? 'calls' : 'cost'}&${range}`,
      );
      const teams = await teamsBy(order);
      const by = new Map(teams);
      expect(teams.length).toBeGreaterThan(10);
      await settled(page);
      await table(page).getByRole('columnheader', { name: heading, exact: true }).getByRole('button').click();
      // Groups with the same figure may come in any order.
      await until(async () => {
        const shown = (await names(page, 'Team')).map((name) => by.get(name));
        return JSON.stringify(shown) === JSON.stringify(teams.map(([, figure]) => figure));
      });
      const head = table(page).getByRole('columnheader', { name: heading, exact: true });
      expect(await head.getAttribute('aria-sort')).toBe('descending');
      // Whoever opens the address sees the same order.
      const shown = await names(page, 'Team');
      await page.reload();
      expect(await names(page, 'Team')).toEqual(shown);
      await done();
    },
  );

  it('a click on p95 puts the slowest first', async () => {
    const { page, done } = await signedIn(gateway.url, `/usage?by=model&${range}`);
    const before = await names(page, 'Model');
    await table(page).getByRole('columnheader', { name: 'p95' }).getByRole('button').click();
    await page.waitForURL((url) => url.searchParams.get('sort') === 'p95');
    const after = await names(page, 'Model');
    const { data } = await gateway.admin<{ data: { model: string; p95_ms: number }[] }>(
      'GET',
      `/admin/v1/usage?group_by=model&limit=500&${range}`,
    );
    const p95 = new Map(data.map(({ model, p95_ms: ms }) => [model, ms]));
    const shown = after.map((model) => p95.get(model)!);
    expect(shown).toEqual([...shown].sort((a, b) => b - a));
    expect(after).not.toEqual(before);
    await done();
  });

  it('a team leads to its keys, a key to its models, and a count to the calls that it counts', async () => {
    const { page, done } = await signedIn(gateway.url, `/usage?${range}`);
    await settled(page);
    await table(page).getByRole('link', { name: 'search', exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get('by') === 'key');
    const team = parameters(page).get('team');
    const keys = await gateway.database.query<{ id: string; name: string | null; failed: number }>(
      `SELECT r.key_id AS id, k.name,
              count(*) FILTER (WHERE status >= 400 OR outcome NOT IN ('completed', 'client_aborted'))::int AS failed
       FROM request_log r LEFT JOIN gateway_key k ON k.id = r.key_id
       WHERE r.team_id = $1 AND started_at >= $2 AND started_at < $3
       GROUP BY r.key_id, k.name`,
      [team, from, to],
    );
    expect(keys.length).toBeGreaterThan(1);
    await table(page).locator('tbody td[data-label="Key"]').first().waitFor();
    expect(await names(page, 'Key')).toHaveLength(keys.length);
    const key = keys.find(({ name, failed }) => name !== null && failed > 0)!;
    const row = table(page).locator('tbody tr').filter({ hasText: key.name! });
    await row.getByTitle('Show the failed requests').click();
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    expect(Object.fromEntries(parameters(page))).toMatchObject({ team, key: key.id, failed: 'true' });
    await page
      .getByText(new RegExp(`^${key.failed.toLocaleString('en-US')} calls?, .*failed`))
      .first()
      .waitFor();

    await page.goBack();
    await settled(page);
    await row.getByRole('link').first().click();
    await page.waitForURL((url) => url.searchParams.get('key') === key.id);
    const models = await gateway.database.query<{ model: string | null }>(
      `SELECT model FROM request_log WHERE key_id = $1 AND started_at >= $2 AND started_at < $3
       GROUP BY model ORDER BY sum(cost_usd) DESC NULLS LAST`,
      [key.id, from, to],
    );
    await table(page).locator('tbody td[data-label="Model"]').first().waitFor();
    expect(new Set(await names(page, 'Model'))).toEqual(
      new Set(models.map(({ model }) => model ?? 'No model')),
    );
    await done();
  });

  it('asks for all series of a chart at once, also of 60 keys on 60 days', async () => {
    const { page, done } = await signedIn(gateway.url, '/teams');
    const asked: URLSearchParams[] = [];
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname === '/admin/v1/usage') asked.push(searchParams);
    });
    await page.goto(`${gateway.url}/console/usage?by=key&${range}`);
    await settled(page);
    await page.getByText('All others').first().waitFor();
    const ofChart = asked.filter((query) => query.has('series'));
    expect(ofChart.map((query) => query.get('series'))).toEqual(ofChart.map(() => '8'));
    expect(ofChart.length).toBeGreaterThan(0);
    // None for one key each.
    expect(asked.filter((query) => query.has('key'))).toEqual([]);
    await done();
  });
}
