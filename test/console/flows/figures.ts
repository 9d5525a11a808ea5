import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { settled, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';

const DAY_MS = 86_400_000;

/** Every figure is the one of SQL, whatever the page. */
export function figures(gateway: ConsoleGateway): void {
  /** The last 14 whole UTC days, for figures that stay the same. */
  const to = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS);
  const from = new Date(to.getTime() - 14 * DAY_MS);
  const range = `from=${from.toISOString()}&to=${to.toISOString()}&tz=UTC`;
  const sums = async (by: string, where = 'true') =>
    gateway.database.query<Record<string, string>>(
      `SELECT ${by} AS name, count(*)::text AS calls, sum(cost_usd)::text AS cost, sum(prompt_tokens + completion_tokens)::text AS tokens,
         sum(completion_tokens)::text AS output, count(*) FILTER (WHERE status >= 400 OR outcome = 'upstream_timeout')::text AS errors
       FROM request_log JOIN team ON team.id = team_id WHERE started_at >= $1 AND started_at < $2 AND ${where} GROUP BY 1
       ORDER BY sum(cost_usd) DESC NULLS LAST, (${by})::text COLLATE "C"`,
      [from, to],
    );

  it('shows the figures of the overview as SQL has them', async () => {
    const { page, done } = await signedIn(gateway.url, `/?${range}`);
    await settled(page);
    const [total] = await sums("'all'");
    expect(await exactOf(page, 'Cost')).toBe(usd(total!.cost!));
    expect(await exactOf(page, 'Calls')).toBe(grouped(total!.calls!));
    expect(await exactOf(page, 'Tokens')).toBe(grouped(total!.tokens!));
    expect(await exactOf(page, 'Error rate')).toBe(total!.errors);
    const teams = await sums('team.name');
    const shown = await page.getByRole('list', { name: 'Top teams' }).getByRole('listitem').allInnerTexts();
    expect(shown.map((text) => text.split('\n')[0])).toEqual(teams.slice(0, 6).map(({ name }) => name));
    await done();
  });

  it('shows usage by model as SQL has it, to the last digit, and every model', async () => {
    const { page, done } = await signedIn(gateway.url, `/usage?by=model&${range}`);
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
    await done();
  });

  it('adds up days of a time zone that is half an hour off', async () => {
    const zone = 'Asia/Kolkata';
    const days = await gateway.database.query<{ calls: number; start: Date }>(
      `SELECT count(*)::int AS calls, min(date_trunc('day', started_at, $1)) AS start FROM request_log
       WHERE started_at >= date_trunc('day', now(), $1) - interval '6 days' AND started_at < date_trunc('day', now(), $1)
       GROUP BY date_trunc('day', started_at, $1) ORDER BY 2`,
      [zone],
    );
    expect(days).toHaveLength(6);
    // Their days begin at 18:30 UTC.
    expect(days[0]!.start.toISOString()).toMatch(/T18:30:00/);
    const end = new Date(days[5]!.start.getTime() + DAY_MS).toISOString();
    const { page, done } = await signedIn(
      gateway.url,
      `/usage?metric=calls&from=${days[0]!.start.toISOString()}&to=${end}&tz=${zone}`,
    );
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
    expect(shown).toEqual(days.map(({ calls }) => calls));
    await done();
  });

  it('shows every reader the days of REPORT_TIMEZONE, and a zone that was chosen in the link', async () => {
    const [month] = await gateway.database.query<{ calls: string }>(
      `SELECT count(*)::text AS calls FROM request_log
       WHERE started_at >= date_trunc('month', date_trunc('month', now(), 'Europe/Berlin') - interval '1 day', 'Europe/Berlin')
         AND started_at < date_trunc('month', now(), 'Europe/Berlin')`,
    );
    const { page, done } = await signedIn(gateway.url, '/?range=last-month', {
      timezoneId: 'America/Los_Angeles',
    });
    await settled(page);
    expect(await exactOf(page, 'Calls')).toBe(grouped(month!.calls));
    await page
      .getByRole('button', { name: /^Time range: Last month Europe\/Berlin, .*00:00 – .*00:00/ })
      .click();
    const zones = page.getByRole('radiogroup', { name: 'Time zone' });
    await zones.waitFor();
    expect(await zones.locator('label').allInnerTexts()).toEqual([
      expect.stringMatching(/^Europe\/Berlin \(UTC\+[12]\), of reports$/),
      expect.stringMatching(/^America\/Los Angeles \(UTC-[78]\), yours$/),
      'UTC',
    ]);
    await zones.getByText(/yours/).click();
    await page.waitForURL((url) => url.searchParams.get('tz') === 'America/Los_Angeles');
    const { href } = new URL(page.url());
    await done();
    // Somebody elsewhere opens the link.
    const other = await signedIn(gateway.url, href.slice(`${gateway.url}/console`.length));
    await settled(other.page);
    await other.page
      .getByRole('button', { name: /^Time range: Last month America\/Los Angeles, / })
      .waitFor();
    await other.done();
  });

  it('lists the requests that a filter leaves, and all of them over its pages', async () => {
    const { page, done } = await signedIn(gateway.url, `/requests?status=429&${range}`);
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
      await until(async () => (await rows.count()) > before);
    }
    expect(await rows.count()).toBe(expected[0]!.n);
    expect(new Set(await rows.locator('td[data-label="Result"]').allInnerTexts())).toEqual(new Set(['429']));
    await page.getByRole('button', { name: 'Remove filter Status: 429' }).click();
    await page.waitForURL((url) => !url.searchParams.has('status'));
    await page.goBack();
    await page.waitForURL((url) => url.searchParams.get('status') === '429');
    await done();
  });

  it('zooms in where the chart is dragged over', async () => {
    const { page, done } = await signedIn(gateway.url, `/?${range}`);
    await settled(page);
    const chart = page.getByRole('img', { name: 'Cost by team and day' });
    await chart.locator('.recharts-bar-rectangle').filter({ visible: true }).first().waitFor();
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
    await done();
  });

  it('saves the table as CSV, with the figures of the API', async () => {
    const { page, done } = await signedIn(gateway.url, `/usage?by=team&then=model&${range}`);
    await settled(page);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV', exact: true }).click(),
    ]);
    expect(download.suggestedFilename()).toBe(
      `postern-usage-${from.toISOString().slice(0, 10)}-to-${new Date(to.getTime() - 1).toISOString().slice(0, 10)}-team-model.csv`,
    );
    const rows = parse((await readFile(await download.path())).toString());
    const { data } = await gateway.admin<{ data: Record<string, string | number | null>[] }>(
      'GET',
      `/admin/v1/usage?group_by=team,model&sort=cost&limit=500&${range}`,
    );
    expect(rows).toHaveLength(data.length);
    expect(rows.length).toBeGreaterThan(50);
    const number = (value: unknown) => Number(value);
    expect(
      rows.map((row) => [row.team_id, row.model, row.cost_usd, number(row.calls), number(row.output_tokens)]),
    ).toEqual(
      data.map((row) => [row.team_id, row.model, row.cost_usd ?? '', row.calls, row.completion_tokens]),
    );
    await done();
  });
}

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

/** The rows of a file of comma-separated values, by the names of its first line. */
function parse(text: string): Record<string, string>[] {
  const lines = [...text.matchAll(/((?:"(?:[^"]|"")*"|[^",\n]*)(?:,|\n))/g)];
  const rows: string[][] = [[]];
  for (const [cell] of lines) {
    const value = cell
      .replace(/,$|\n$/, '')
      .replace(/^"(.*)"$/s, '$1')
      .replaceAll('""', '"');
    rows.at(-1)!.push(value);
    if (cell.endsWith('\n')) rows.push([]);
  }
  const [names = [], ...values] = rows.slice(0, -1);
  return values.map((row) => Object.fromEntries(names.map((name, index) => [name, row[index]!])));
}
