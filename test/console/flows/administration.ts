import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openPage, SECRETS, settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

interface ListAudit {
  parameters: { name: string; schema: { enum?: string[] } }[];
}
const { paths } = JSON.parse(readFileSync(join(__dirname, '../../../openapi.json'), 'utf8')) as {
  paths: { '/admin/v1/audit': { get: ListAudit } };
};
const AUDIT = new Map(
  paths['/admin/v1/audit'].get.parameters.map(({ name, schema }) => [name, schema.enum ?? []]),
);

export function administration(gateway: ConsoleGateway): void {
  it('shows who changed what, with the values before and after', async () => {
    await gateway.admin('PATCH', '/admin/v1/teams/fraud', { disabled: true });
    const { page, done } = await signedIn(gateway.url, '/audit?subject_name=fraud');
    const entry = page.getByRole('list', { name: 'Changes' }).getByRole('listitem').first();
    await entry.getByText('admin-token').waitFor();
    expect(await entry.locator('del').innerText()).toContain('false');
    expect(await entry.locator('ins').innerText()).toContain('true');
    await done();
  });

  it.each([
    ['Action', 'action'],
    ['Type of object', 'subject_type'],
  ])('lets changes be chosen by every value that the API has: %s', async (label, name) => {
    const values = AUDIT.get(name)!;
    expect(values.length).toBeGreaterThan(5);
    const { page, done } = await signedIn(gateway.url, '/audit');
    const choice = page.getByRole('combobox', { name: label, exact: true });
    for (const value of values) {
      await choice.click();
      await page.getByRole('option').first().waitFor();
      expect(await page.getByRole('option').allInnerTexts()).toEqual(values);
      await page.getByRole('option', { name: value, exact: true }).click();
      await page.waitForURL((url) => url.searchParams.get(name) === value);
    }
    await settled(page);
    await done();
  });

  it('reads an unknown value of a filter in the URL as none', async () => {
    const { page, done } = await signedIn(gateway.url, '/audit?action=painted&subject_name=fraud');
    await page.getByRole('list', { name: 'Changes' }).getByText('fraud').first().waitFor();
    expect(await page.getByRole('combobox', { name: 'Action', exact: true }).inputValue()).toBe('');
    await done();
  });

  it('shows the state of the system, and no value of a setting', async () => {
    const { page, done } = await signedIn(gateway.url, '/system');
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
    await done();
  });

  it('lets members of a team have keys of their own, for some providers', async () => {
    const { id } = await gateway.admin<{ id: string }>('GET', '/admin/v1/teams/fraud');
    const { page, done } = await signedIn(gateway.url, `/teams?open=${id}`);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Edit team fraud' });
    await form.getByLabel('Keys of members').first().click();
    await page.getByRole('option', { name: 'Members create keys of their own' }).click();
    await form.getByLabel('USD a month each').fill('5');
    await form.getByLabel("Providers and routes of members' keys").first().click();
    await page.getByRole('option', { name: 'openai', exact: true }).click();
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('3 each, for at most 90 days; $5 a month; openai').waitFor();
    expect(await gateway.admin('GET', '/admin/v1/teams/fraud')).toMatchObject({
      self_service: { keys_per_user: 3, max_days: 90, budget_usd_per_month: '5', providers: ['openai'] },
    });
    await done();
  });

  it('shows a team its budgets and spend as SQL finds them', async () => {
    const to = new Date();
    to.setUTCHours(0, 0, 0, 0);
    const from = new Date(to.getTime() - 20 * 86_400_000);
    const { page, done } = await signedIn(
      gateway.url,
      `/teams?from=${from.toISOString()}&to=${to.toISOString()}`,
    );
    await settled(page);
    const sums = await gateway.database.query<{ name: string; cost: string }>(
      `SELECT t.name, sum(r.cost_usd)::text AS cost FROM request_log r JOIN team t ON t.id = r.team_id
       WHERE r.started_at >= $1 AND r.started_at < $2 GROUP BY t.name`,
      [from, to],
    );
    expect(sums.length).toBeGreaterThan(11);
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
    await done();
  });

  it('shows the holder of a key what it used, and keeps nothing', async () => {
    const { key } = await gateway.admin<{ key: string }>('POST', '/admin/v1/keys', {
      team: 'search',
      name: 'held',
      budgets: [{ usd: '50.00', period: 'month' }],
    });
    SECRETS.add(key);
    const { page, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console/key`);
    await page.getByLabel('Gateway key').first().fill('ptn_wrong');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('alert').waitFor();
    await page.getByLabel('Gateway key').first().fill(key);
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('heading', { name: 'search / held' }).waitFor();
    await page.getByText('$0.00 of $50.00').waitFor();
    await checkAppearance(page);
    await done(/401/);
  });
}
