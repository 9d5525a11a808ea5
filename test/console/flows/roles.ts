import type { Page } from 'playwright-core';
import { openPage, SECRETS, settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { callWith } from '../model-provider.js';

const CHANGES =
  /^(Create|Add(?! filter)|Edit|Rotate|Revoke|Disable|Enable|Raise|Reset|Remove|Save|Set|Reprice|Change|Test)( |$)/;
const PAGES = [
  'Usage',
  'Requests',
  'Keys',
  'Teams',
  'Limits',
  'Providers and routes',
  'Prices',
  'Access',
  'Webhooks',
  'Sinks',
  'Audit',
  'System',
];

/** What those see who are no administrators. */
export function roles(gateway: ConsoleGateway): void {
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  /** The status of a change that the page itself sends. */
  const change = (page: Page, method: string, path: string, body = '{}') =>
    page.evaluate<number>(
      `fetch('/admin/v1/${path}', { method: '${method}', headers: { 'content-type': 'application/json', 'x-postern-console': '1' },
        body: '${body}' }).then((response) => response.status)`,
    );

  it('a viewer sees every page, no button that changes something, and gets 403 from the API', async () => {
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      name: 'reader',
      role: 'viewer',
    });
    SECRETS.add(token);
    const { page, done } = await signedIn(gateway.url, '/', { token });
    for (const name of PAGES) {
      await page.getByRole('link', { name, exact: true }).first().click();
      await page.getByRole('heading', { level: 1, name }).waitFor();
      await settled(page);
      expect([name, await page.getByRole('button', { name: CHANGES }).allInnerTexts()]).toEqual([name, []]);
      expect(await page.getByRole('main').getByRole('alert').count()).toBe(0);
    }
    const { data } = await gateway.admin<{ data: { id: string }[] }>('GET', '/admin/v1/keys?limit=1');
    for (const path of [`keys?key=${data[0]!.id}`, 'providers?open=openai', 'keys?new=1', 'prices?new=1']) {
      await page.goto(`${gateway.url}/console/${path}`);
      // A drawer, but no form.
      if (!path.endsWith('new=1')) await page.getByRole('dialog').waitFor();
      await settled(page);
      expect(await page.getByRole('button', { name: CHANGES }).allInnerTexts()).toEqual([]);
    }
    expect(await change(page, 'POST', 'keys', '{"team":"search","name":"forbidden"}')).toBe(403);
    expect(await change(page, 'DELETE', 'providers/openai')).toBe(403);
    await done(/status of 403/);
  });

  it('a member sees their team alone, and has keys of their own', async () => {
    await gateway.admin('PATCH', '/admin/v1/teams/billing', {
      self_service: { keys_per_user: 2, max_days: 30, budget_usd_per_month: '5' },
    });
    gateway.issuer.user = 'member';
    const { page, take, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console`);
    await page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
    await settled(page);
    take(/request to/);
    const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    const names = (await links.allInnerTexts()).filter((name) => name !== 'Postern');
    expect(names).toEqual(['Overview', 'Usage', 'Requests', 'Keys', 'Teams', 'Limits']);
    for (const name of names) {
      await page.getByRole('link', { name, exact: true }).first().click();
      await page.getByRole('heading', { level: 1, name }).waitFor();
      await settled(page);
      expect(await page.getByRole('main').innerText()).not.toMatch(/\b(growth|checkout)\b/);
    }
    // A drawer that asks for the price of a call.
    const [call] = await gateway.database.query<{ id: string }>(
      `SELECT r.id FROM request_log r JOIN team ON team.id = team_id WHERE team.name = 'billing' AND cost_usd IS NOT NULL
       ORDER BY started_at DESC LIMIT 1`,
    );
    await page.goto(`${gateway.url}/console/requests?range=30d&id=${call!.id}`);
    await page.getByRole('dialog').getByRole('heading', { name: 'Timeline' }).waitFor();
    await settled(page);

    await page.goto(`${gateway.url}/console/keys`);
    await settled(page);
    await button(page, 'Create key').click();
    const form = page.getByRole('dialog');
    await form.getByLabel('Name').fill('of mia');
    await form.getByRole('button', { name: 'Create key' }).click();
    const secret = (await form.getByRole('region', { name: 'secret' }).innerText()).trim();
    SECRETS.add(secret);
    expect(await callWith(gateway.url, secret)).toBe(200);
    await button(page, 'I have copied it').click();
    await page.getByRole('row').filter({ hasText: 'of mia' }).click();
    await form.getByText('sso:mia@example.com').waitFor();
    expect(await button(page, 'Edit').count()).toBe(0);
    await button(page, 'Revoke').click();
    await page.getByLabel('Type of mia to confirm').fill('of mia');
    await button(page, 'Revoke key').click();
    await form.getByText('revoked', { exact: true }).waitFor();
    // Keys of the team that are not their own are only shown.
    await page.goto(`${gateway.url}/console/keys?q=production`);
    await settled(page);
    await page.getByRole('row').nth(1).click();
    await form.getByText('Secret begins with').waitFor();
    for (const name of ['Edit', 'Rotate', 'Revoke']) expect(await button(page, name).count()).toBe(0);
    const other = await gateway.database.find<{ id: string }>(
      `SELECT k.id FROM gateway_key k JOIN team ON team.id = team_id WHERE team.name = 'support' LIMIT 1`,
    );
    expect(take()).toEqual([]);
    expect(await change(page, 'POST', `keys/${other.id}/revoke`)).toBe(404);
    await done(/status of 404/);
  });
}
