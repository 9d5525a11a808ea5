import type { Page } from 'playwright-core';
import { SECRETS, settled, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { callWith } from '../model-provider.js';
import { HOSTILE } from './hostile.js';

/** Creating, using, rotating and revoking keys, of teams without budgets. A call costs $1.10. */
export function keyFlows(gateway: ConsoleGateway): void {
  const dialog = (page: Page) => page.getByRole('dialog');
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

  it('creates a key, shows its secret once, and shows what it used', async () => {
    const { page, done } = await signedIn(gateway.url, '/keys');
    await settled(page);
    await button(page, 'Create key').click();
    await dialog(page).getByLabel('Team').first().click();
    await page.getByRole('option', { name: 'checkout', exact: true }).click();
    await dialog(page).getByLabel('Name').fill('flow');
    await dialog(page).getByRole('button', { name: 'Create key' }).click();
    const secret = (await dialog(page).getByRole('region', { name: 'secret' }).innerText()).trim();
    expect(secret).toMatch(/^ptn_\w{38}$/);
    SECRETS.add(secret);
    for (const [tab, line] of [
      ['curl', `Authorization: Bearer ${secret}`],
      ['OpenAI', `OPENAI_API_KEY=${secret}`],
      ['Anthropic', `ANTHROPIC_API_KEY=${secret}`],
      ['Claude Code', `ANTHROPIC_AUTH_TOKEN=${secret}`],
      ['Codex', 'wire_api = "responses"'],
    ] as const) {
      await dialog(page).getByRole('tab', { name: tab, exact: true }).click();
      await expect(dialog(page).getByRole('tabpanel').innerText()).resolves.toContain(line);
    }
    expect(await callWith(gateway.url, secret)).toBe(200);
    await button(page, 'I have copied it').click();
    await dialog(page).waitFor({ state: 'detached' });

    // A whole secret in the search field is cut to the characters that are shown.
    await page.getByLabel('Name or start of the secret').fill(secret);
    await page.keyboard.press('Enter');
    const row = page.getByRole('row').filter({ hasText: 'flow' });
    await row.waitFor();
    expect(page.url()).toContain(`q=${secret.slice(0, 12)}`);
    expect(page.url()).not.toContain(secret.slice(0, 13));
    const shown = await until(async () => {
      await page.reload();
      await settled(page);
      const cells = await row.getByRole('cell').allInnerTexts();
      return cells[5] === '1' && cells;
    });
    const { cost } = await gateway.database.find<{ cost: string }>(
      `SELECT sum(cost_usd)::text AS cost FROM request_log JOIN gateway_key k ON k.id = key_id WHERE k.name = 'flow'`,
    );
    expect(Number(cost)).toBe(1.1);
    expect(shown[6]).toBe('$1.10');
    await done();
  });

  it('revokes a key only after its name was typed; calls with it get 401', async () => {
    const { key, id } = await gateway.admin<{ key: string; id: string }>('POST', '/admin/v1/keys', {
      team: 'checkout',
      name: 'leaving',
    });
    expect(await callWith(gateway.url, key)).toBe(200);
    const { page, done } = await signedIn(gateway.url, `/keys?key=${id}`);
    await button(page, 'Revoke').click();
    const confirm = button(page, 'Revoke key');
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByLabel('Type leaving to confirm').fill('leavin');
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByLabel('Type leaving to confirm').fill('leaving');
    await confirm.click();
    await dialog(page).getByText('revoked', { exact: true }).waitFor();
    expect(await button(page, 'Edit').count()).toBe(0);
    await until(async () => ((await callWith(gateway.url, key)) === 401 ? true : undefined));
    await done();
  });

  it('rotates with a grace, and finds the key of either secret', async () => {
    const { key, id } = await gateway.admin<{ key: string; id: string }>('POST', '/admin/v1/keys', {
      team: 'checkout',
      name: 'turning',
    });
    const { page, done } = await signedIn(gateway.url, `/keys?key=${id}`);
    await button(page, 'Rotate').click();
    await button(page, 'Rotate key').click();
    const fresh = (await page.getByRole('region', { name: 'secret' }).innerText()).trim();
    expect(fresh).not.toBe(key);
    await button(page, 'I have copied it').click();
    await page.getByText('works until it ends in').waitFor();
    expect(await callWith(gateway.url, key)).toBe(200);
    expect(await callWith(gateway.url, fresh)).toBe(200);
    await page.keyboard.press('Escape');
    await button(page, 'Whose key is this?').click();
    await page.getByLabel('Secret', { exact: true }).fill(key);
    await button(page, 'Find').click();
    await dialog(page).getByText('works until it ends').waitFor();
    await button(page, 'Open the key').click();
    await page.waitForURL((url) => url.searchParams.get('key') === id);
    SECRETS.add(key).add(fresh);
    await done();
  });

  it('raises a budget that is exhausted', async () => {
    const { key, id } = await gateway.admin<{ key: string; id: string }>('POST', '/admin/v1/keys', {
      team: 'growth',
      name: 'thrifty',
      budgets: [{ usd: '1.00', period: 'month' }],
    });
    let calls = 0;
    await until(async () => {
      const status = await callWith(gateway.url, key);
      if (status === 200) calls++;
      return status === 402 ? true : undefined;
    });
    expect(calls).toBeGreaterThan(0);
    const { spent } = await gateway.database.find<{ spent: string }>(
      `SELECT sum(charge_usd)::numeric(12, 2)::text AS spent FROM request_log WHERE key_id = $1
       HAVING count(charge_usd) = $2`,
      [id, calls],
    );
    const { page, done } = await signedIn(gateway.url, `/keys?key=${id}`);
    const meter = dialog(page).getByRole('meter');
    await meter.waitFor();
    expect(await meter.getAttribute('aria-valuetext')).toBe(`$${spent} used, $0.00 left`);
    await button(page, 'Edit').click();
    await page.getByRole('group', { name: 'Budget 1' }).getByLabel('Amount').fill('50.00');
    await button(page, 'Save').click();
    await dialog(page).getByText(`$${spent} of $50.00`).waitFor();
    await until(async () => ((await callWith(gateway.url, key)) === 200 ? true : undefined));
    await done();
  });

  it('says that a budget rejects calls, leads to the amount, and resets', async () => {
    const { key, id } = await gateway.admin<{ key: string; id: string }>('POST', '/admin/v1/keys', {
      team: 'growth',
      name: 'rejected',
      budgets: [{ usd: '0.01', period: 'month', reservation: 'worst' }],
    });
    expect(await callWith(gateway.url, key)).toBe(402);
    await until(async () => {
      const { data } = await gateway.admin<{ data: { state: string }[] }>(
        'GET',
        `/admin/v1/limits?key=${id}`,
      );
      return data[0]!.state === 'blocking' ? true : undefined;
    });
    const { page, done } = await signedIn(gateway.url, `/limits?state=blocking&key=${id}`);
    const row = page.getByRole('table', { name: 'Limits' }).locator('tbody tr');
    await row.getByText(/^Rejects calls: the last one needed \$[\d.,]+, and \$0\.01 is left\.$/).waitFor();
    await row.getByText('Blocking', { exact: true }).waitFor();
    await row.getByRole('link', { name: 'Raise budget per month of growth / rejected' }).click();
    await page.waitForURL((url) => url.pathname.endsWith('/keys') && url.searchParams.get('key') === id);
    await page
      .getByRole('dialog', { name: 'Edit key rejected' })
      .getByRole('button', { name: 'Cancel' })
      .click();
    await dialog(page)
      .getByText(/^Rejects calls/)
      .waitFor();
    await page.goto(`${gateway.url}/console/key`);
    await page.getByLabel('Gateway key', { exact: true }).fill(key);
    await button(page, 'Show').click();
    await page.getByText(/^Rejects calls: the last one needed/).waitFor();
    SECRETS.add(key);
    await page.goto(`${gateway.url}/console/limits?key=${id}`);
    await row
      .getByRole('button', { name: 'Reset budget per month of growth / rejected for this period' })
      .click();
    await page.getByRole('dialog').getByLabel('Reason').fill('a test');
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click();
    await row.getByText('OK', { exact: true }).waitFor();
    await done();
  });

  it('shows the figures that SQL finds, and names as text', async () => {
    const to = new Date();
    to.setUTCHours(0, 0, 0, 0);
    const from = new Date(to.getTime() - 20 * 86_400_000);
    const { page, done } = await signedIn(
      gateway.url,
      `/keys?team=${encodeURIComponent(HOSTILE)}&from=${from.toISOString()}&to=${to.toISOString()}`,
    );
    const sums = await gateway.database.query<{ name: string; calls: string; cost: string | null }>(
      `SELECT k.name, count(r.id)::text AS calls, sum(r.cost_usd)::text AS cost
       FROM gateway_key k JOIN team t ON t.id = k.team_id
       LEFT JOIN request_log r ON r.key_id = k.id AND r.started_at >= $2 AND r.started_at < $3
       WHERE t.name = $1 GROUP BY k.name ORDER BY k.name`,
      [HOSTILE, from, to],
    );
    expect(sums).toHaveLength(5);
    const shown = await until(async () => {
      await settled(page);
      const rows = await page.getByRole('row').filter({ hasText: HOSTILE }).all();
      const cells = await Promise.all(
        rows.map(async (row) => ({
          name: (await row.getByRole('cell').first().innerText()).split('\n')[0],
          calls: await row.locator('[data-exact]').nth(0).getAttribute('data-exact'),
          cost: await row.locator('[data-exact]').nth(1).getAttribute('data-exact'),
        })),
      );
      return cells.length === 5 && cells.some(({ calls }) => calls !== '0') ? cells : undefined;
    });
    const usd = (text: string | null) =>
      `$${Number(text)
        .toFixed(9)
        .replace(/0{1,7}$/, '')}`;
    expect(shown.sort((a, b) => (a.name! < b.name! ? -1 : 1))).toEqual(
      sums.map(({ name, calls, cost }) => ({ name, calls, cost: usd(cost) })),
    );
    await done();
  });

  it('opens a key by keyboard alone, and returns to its row', async () => {
    const { page, done } = await signedIn(gateway.url, '/keys');
    await settled(page);
    const row = page.getByRole('row').nth(1);
    await row.focus();
    await page.keyboard.press('Enter');
    await dialog(page).waitFor();
    await page.keyboard.press('Escape');
    await dialog(page).waitFor({ state: 'detached' });
    await until(() => page.evaluate<boolean>(`document.activeElement?.getAttribute('role') === 'row'`));
    await done();
  });
}
