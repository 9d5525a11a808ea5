import type { Page } from 'playwright-core';
import { ADMIN_TOKEN } from '../../support/gateway.js';
import { SECRETS, seriousViolations, settled, signedIn, still, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';

/** Finding things: the search of every page, and the filters and orders of lists. */
export function finding(gateway: ConsoleGateway): void {
  const box = (page: Page) => page.getByRole('combobox', { name: 'Search', exact: true });
  const options = (page: Page) => page.getByRole('listbox', { name: 'Found' }).getByRole('option');
  const isFocused = (page: Page) =>
    page.evaluate<boolean>('document.activeElement?.getAttribute("aria-label") === "Search"');

  it('is led to by / on every page, goes to a key by keyboard alone, and Escape leads back', async () => {
    const { page, done } = await signedIn(gateway.url, '/usage?range=7d');
    await settled(page);
    await page.getByRole('button', { name: 'Add filter' }).focus();
    await page.keyboard.press('/');
    expect(await isFocused(page)).toBe(true);
    await page.keyboard.type('SEARCH/note');
    // What was found for the first letters is shown until the last are answered.
    await until(async () => (await options(page).first().textContent()) === 'search / notebook');
    expect(await seriousViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    expect(await box(page).inputValue()).toBe('');
    await until(() => page.evaluate<boolean>('document.activeElement?.textContent === "Add filter"'));

    await page.keyboard.press('/');
    // Enter before there is anything to choose goes to the first that is found.
    await page.keyboard.type('search/note');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname === '/console/keys' && url.searchParams.has('key'));
    // The time range goes along, and what was typed does not.
    expect(new URL(page.url()).searchParams.get('range')).toBe('7d');
    expect(page.url()).not.toContain('note');
    await page.getByRole('dialog').getByText('search / notebook').waitFor();
    // In a dialog, and in a field, / is a character.
    await page.keyboard.press('/');
    expect(await isFocused(page)).toBe(false);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByLabel('Name or start of the secret').focus();
    await page.keyboard.press('/');
    expect(await isFocused(page)).toBe(false);
    await done();
  });

  it('finds whose key a whole key is, of which nothing stays in the page', async () => {
    const { key, id } = await gateway.admin<{ key: string; id: string }>('POST', '/admin/v1/keys', {
      team: 'checkout',
      name: 'leaked',
    });
    SECRETS.add(key);
    const { page, done } = await signedIn(gateway.url, '/');
    await settled(page);
    const asked: string[] = [];
    page.on('request', (request) => {
      asked.push(`${request.method()} ${request.url()}`);
    });
    await box(page).fill(`authorization: Bearer ${key}`);
    expect(await box(page).inputValue()).toBe(key.slice(0, 12));
    await options(page).getByText('leaked').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('key') === id);
    expect(asked.filter((line) => line.includes(key))).toEqual([]);
    expect(asked.filter((line) => line.includes('/keys/find'))).toHaveLength(1);
    // Until it is there, Escape is not for it.
    await page.getByRole('dialog').getByText('leaked').first().waitFor();
    await settled(page);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const refreshToken = `ptr_${'x'.repeat(38)}`;
    SECRETS.add(refreshToken);
    await box(page).fill(`refresh_token=${refreshToken}`);
    expect(await box(page).inputValue()).toBe('ptr_xxxxxxxx');
    await page.getByText('Nothing has this name or ID.').waitFor();
    expect(asked.filter((line) => line.includes(refreshToken))).toEqual([]);
    const stranger = `ptn_${'x'.repeat(38)}`;
    SECRETS.add(stranger);
    await box(page).fill(stranger);
    await page.getByText('No key of this gateway has or had this secret.').waitFor();
    // Chromium reports the 400 or 404.
    await done(/Failed to load resource.*40[04]/);
  });

  it('finds a call by its ID and by that of the provider, and an end user', async () => {
    const call = await gateway.database.find<{ id: string; provider: string; user: string }>(
      `SELECT id, provider_request_id AS provider, end_user AS "user" FROM request_log
       WHERE provider_request_id IS NOT NULL AND end_user IS NOT NULL AND started_at < now() - interval '3 days'
       ORDER BY started_at DESC LIMIT 1`,
    );
    const { page, done } = await signedIn(gateway.url, '/');
    await settled(page);
    for (const text of [call.id, call.provider]) {
      await box(page).fill(text);
      await page.keyboard.press('Enter');
      await page.waitForURL((url) => url.searchParams.get('id') === call.id);
      await page.getByRole('dialog').getByText(call.id).first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await box(page).fill(call.user);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('end_user') === call.user);
    await page.getByRole('button', { name: `Remove filter End user: ${call.user}` }).waitFor();
    await done();
  });

  it('lists the failed calls that the histogram counts, and saves them as CSV', async () => {
    const to = new Date();
    to.setUTCMinutes(0, 0, 0);
    const from = new Date(to.getTime() - 7 * 86_400_000);
    const { failed, statuses } = await gateway.database.find<{ failed: number; statuses: number }>(
      `SELECT count(*) FILTER (WHERE status >= 400 OR outcome NOT IN ('completed', 'client_aborted'))::int AS failed,
              count(*) FILTER (WHERE status = 429 OR status >= 500)::int AS statuses
       FROM request_log WHERE started_at >= $1 AND started_at < $2`,
      [from, to],
    );
    expect(failed).toBeGreaterThan(statuses);
    const { page, done } = await signedIn(
      gateway.url,
      `/requests?from=${from.toISOString()}&to=${to.toISOString()}`,
    );
    await settled(page);
    await page.getByRole('link', { name: `${failed} failed` }).click();
    await page.getByRole('heading', { name: `${failed} calls, ${failed} failed` }).waitFor();
    await page.getByRole('button', { name: 'Remove filter Result: Failed' }).click();
    await page.getByRole('link', { name: `${failed} failed` }).waitFor();

    // Several statuses are one filter.
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByRole('combobox', { name: 'Field' }).click();
    await page.getByRole('option', { name: 'Status', exact: true }).click();
    await page.getByRole('combobox', { name: 'Status' }).pressSequentially('429,5xx,');
    await page.getByRole('button', { name: 'Add filter' }).last().click();
    await page.waitForURL((url) => url.searchParams.get('status') === '429,5xx');
    await page.getByRole('heading', { name: new RegExp(`^${statuses} calls`) }).waitFor();
    const address = (await page.getByRole('link', { name: 'CSV' }).getAttribute('href'))!;
    const csv = await (await page.context().request.get(`${gateway.url}${address}`)).text();
    expect(csv.trim().split('\n')).toHaveLength(statuses + 1);

    // The red part of a bar is of one period.
    await page.getByRole('button', { name: 'Remove filter Status: 429,5xx' }).click();
    await settled(page);
    const red = page.locator('.recharts-bar-rectangle path[fill*="red"]').last();
    const { x, y, width, height } = (await red.boundingBox())!;
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.mouse.down();
    // A hand takes several frames, in which the chart is drawn again.
    await still(page);
    await page.mouse.up();
    await page.waitForURL((url) => url.searchParams.get('failed') === 'true');
    expect(new URL(page.url()).searchParams.get('from')).not.toBe(from.toISOString());
    await done();
  });

  it('finds every key for a filter, however many there are', async () => {
    await gateway.database.query(
      `INSERT INTO gateway_key (id, team_id, name)
       SELECT ('01a00000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, $1, 'many-' || i FROM generate_series(1, 600) AS i`,
      [gateway.seeded.teamIds[0]],
    );
    const { page, done } = await signedIn(gateway.url, '/requests');
    await settled(page);
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByRole('combobox', { name: 'Field' }).click();
    await page.getByRole('option', { name: 'Key', exact: true }).click();
    await page.getByRole('combobox', { name: 'Key', exact: true }).fill('search/MANY-1');
    await page.getByRole('option', { name: /^search \/ many-1( |$)/ }).click();
    await page.getByRole('button', { name: 'Add filter' }).last().click();
    await page.waitForURL((url) => url.searchParams.get('key') === '01a00000-0000-7000-8000-000000000001');
    await page.getByRole('button', { name: 'Remove filter Key: search / many-1' }).waitFor();
    await gateway.database.query(`DELETE FROM gateway_key WHERE name LIKE 'many-%'`);
    await done();
  });

  it('finds keys and teams while a part of their names is typed', async () => {
    const { page, done } = await signedIn(gateway.url, '/keys');
    await settled(page);
    const names = async (table: string) =>
      page
        .getByRole('table', { name: table })
        .locator('tbody tr')
        .locator('td:first-child')
        .allTextContents();
    await page.getByLabel('Name or start of the secret').pressSequentially('CUSTOMER/noteb');
    await until(async () => (await names('Gateway keys')).length === 1);
    expect((await names('Gateway keys'))[0]).toMatch(/^notebook/);
    await page.waitForURL((url) => url.searchParams.get('q') === 'CUSTOMER/noteb');
    // One entry in the history, not one for each letter.
    await page.goBack();
    expect(page.url()).not.toContain('/console/keys');
    await page.goto(`${gateway.url}/console/teams`);
    await settled(page);
    await page.getByLabel('Name', { exact: true }).pressSequentially('EARCH');
    await until(async () => (await names('Teams')).length === 2);
    expect((await names('Teams')).sort()).toEqual(['research', 'search']);
    const active = await gateway.database.find<{ count: string }>(
      `SELECT count(*)::text FROM gateway_key k JOIN team t ON t.id = k.team_id
       WHERE t.name = 'search' AND k.revoked_at IS NULL AND NOT k.disabled AND COALESCE(k.expires_at > now(), true)`,
    );
    const row = page
      .getByRole('row')
      .filter({ has: page.getByRole('cell', { name: 'search', exact: true }) });
    expect(await row.locator('td[data-label="Active keys"]').textContent()).toBe(active.count);
    await done();
  });

  it('sorts keys on the gateway, and shows those that expire next, are unused, or cost most', async () => {
    const { page, done } = await signedIn(gateway.url, '/keys?range=30d');
    await settled(page);
    const table = page.getByRole('table', { name: 'Gateway keys' });
    const rows = async () => {
      await settled(page);
      const all = await table.locator('tbody tr').all();
      return Promise.all(
        all.map(async (row) => {
          // A row may be gone meanwhile.
          const [name = '', team = ''] = await row.locator('td').allTextContents();
          return `${team.replace(/[\w.]+@.*/, '')}/${name.replace(/(ptn_.*|…)$/, '')}`;
        }),
      );
    };
    const sorted = async (sql: string) =>
      (
        await gateway.database.query<{ name: string }>(
          `SELECT t.name || '/' || k.name AS name FROM gateway_key k JOIN team t ON t.id = k.team_id ${sql}`,
        )
      ).map(({ name }) => name);
    await table.getByRole('button', { name: /^Expires/ }).click();
    await page.waitForURL((url) => url.searchParams.get('sort') === 'expires');
    await until(async () => (await rows())[0] === 'billing/ci');
    expect((await rows()).slice(0, 2)).toEqual(
      await sorted('WHERE k.expires_at > now() AND k.revoked_at IS NULL ORDER BY k.expires_at LIMIT 2'),
    );
    expect(await table.getByRole('columnheader', { name: /^Expires/ }).getAttribute('aria-sort')).toBe(
      'ascending',
    );

    await table.getByRole('button', { name: /^Cost/ }).click();
    await page.waitForURL((url) => url.searchParams.get('sort') === 'cost');
    await page.getByText('Keys with calls in the last 30 days, the largest first.').waitFor();
    const [dearest] = await gateway.database.query<{ name: string }>(
      `SELECT t.name || '/' || k.name AS name FROM request_log r JOIN gateway_key k ON k.id = r.key_id
       JOIN team t ON t.id = k.team_id WHERE r.started_at >= date_trunc('day', now(), 'UTC') - interval '29 days'
       GROUP BY 1 ORDER BY sum(r.cost_usd) DESC NULLS LAST LIMIT 1`,
    );
    await until(async () => (await rows())[0] === dearest!.name);

    await page.getByRole('combobox', { name: 'Expiring or unused' }).click();
    await page.getByRole('option', { name: 'Expire within 7 days' }).click();
    await page.waitForURL((url) => url.searchParams.has('expires_before'));
    expect(new URL(page.url()).searchParams.get('status')).toBe('active');
    await until(async () => {
      const shown = await rows();
      return shown.length === 1 && shown[0] === 'billing/ci';
    });
    await done();
  });

  it('leads from a key to its team, limits, changes and requests, and from a team to a new key', async () => {
    const { id } = await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', {
      team: 'mobile',
      name: 'linked',
      budgets: [{ usd: '5', period: 'month' }],
    });
    const { page, done } = await signedIn(gateway.url, `/keys?key=${id}`);
    const drawer = page.getByRole('dialog');
    await drawer.getByText('linked').first().waitFor();
    // What loads above the link moves it.
    await settled(page);
    await drawer.getByRole('link', { name: 'Show its requests' }).click();
    // In the range that the drawer showed.
    await page.waitForURL(
      (url) => url.pathname === '/console/requests' && url.searchParams.get('range') === '30d',
    );
    await page.goBack();
    await drawer.getByRole('link', { name: 'Its changes' }).click();
    await page.waitForURL((url) => url.searchParams.get('subject_id') === id);
    await page.getByText('Changes of one object: mobile/linked').waitFor();
    await page.getByRole('list', { name: 'Changes' }).locator('summary').first().click();
    await page.getByRole('link', { name: 'Open the key mobile/linked' }).click();
    await drawer.getByRole('link', { name: 'On the page Limits' }).click();
    await page.waitForURL((url) => url.pathname === '/console/limits' && url.searchParams.get('key') === id);
    await page.getByRole('link', { name: 'mobile / linked', exact: true }).click();
    await page.waitForURL((url) => url.pathname === '/console/keys' && url.searchParams.get('key') === id);
    await drawer.getByRole('link', { name: 'mobile', exact: true }).click();
    await page.waitForURL((url) => url.pathname === '/console/teams');
    await drawer.getByRole('link', { name: 'Create key' }).click();
    await page.waitForURL((url) => url.pathname === '/console/keys' && url.searchParams.get('new') === '1');
    await until(async () => (await drawer.getByRole('combobox', { name: 'Team' }).inputValue()) === 'mobile');
    await done();
  });

  it('finds for a member only what their teams have', async () => {
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      name: 'finder',
      role: 'team',
      teams: ['billing'],
    });
    SECRETS.add(token);
    for (const [as, count] of [
      [token, 1],
      [ADMIN_TOKEN, 5],
    ] as const) {
      const { page, done } = await signedIn(gateway.url, '/', { token: as });
      await settled(page);
      await box(page).fill('notebook');
      await options(page).getByText('notebook').first().waitFor();
      const keys = await options(page).filter({ hasText: ' / ' }).allTextContents();
      expect(keys).toHaveLength(count);
      if (count === 1) expect(keys).toEqual(['billing / notebook']);
      await done();
    }
  });
}
