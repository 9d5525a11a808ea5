import { insertRow } from '../../request-log/rows.js';
import { settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

interface Named {
  id: string;
}

/** What a form says about a change before it is saved, and where the log of changes leads. */
export function changeFlows(gateway: ConsoleGateway): void {
  it('a new budget says what was spent before, from when it counts, and one that is there says neither', async () => {
    const { id: team_id } = await gateway.admin<Named>('POST', '/admin/v1/teams', {
      name: 'late',
      budgets: [{ tokens: 1_000_000, period: 'month' }],
    });
    const { id: key_id } = await gateway.admin<Named>('POST', '/admin/v1/keys', { team: 'late', name: 'ci' });
    await insertRow(gateway.database, new Date(), { team_id, key_id, cost_usd: '20.17' });
    for (const path of [`/teams?open=${team_id}`, `/keys?key=${key_id}`]) {
      const { page, done } = await signedIn(gateway.url, path);
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      const form = page.getByRole('dialog', { name: /^Edit / });
      const said = form.getByText(/^Counts from /);
      const hasOne = path.startsWith('/teams');
      await form.getByText('Limits of all calls together').waitFor();
      await settled(page);
      expect([path, await said.count()]).toEqual([path, 0]);
      await form.getByRole('button', { name: 'Add a budget' }).first().click();
      const added = form.getByRole('group', { name: `Budget ${hasOne ? 2 : 1}` });
      await added
        .getByText(
          /Counts from the start of its month\. \$20\.17 was spent since \w{3} 1, .*00:00.*, which counts\./,
        )
        .waitFor();
      expect([path, await said.count()]).toEqual([path, 1]);
      await checkAppearance(page);
      await added.getByLabel('Period').first().click();
      await page.getByRole('option', { name: 'in total' }).filter({ visible: true }).click();
      await added.getByText('was spent since').waitFor({ state: 'detached' });
      await added.getByText('Counts from when it is saved.').waitFor();
      await added.getByLabel('Amount').fill('30');
      await form.getByRole('button', { name: 'Save' }).click();
      await form.waitFor({ state: 'detached' });
      // The budgets that there are keep what was used.
      await page.getByRole('button', { name: 'Edit', exact: true }).click();
      await form.getByRole('group', { name: 'Budget 1' }).waitFor();
      await settled(page);
      expect([path, await said.count()]).toEqual([path, 0]);
      await done();
    }
  });

  it('teams are filtered by cost center', async () => {
    await gateway.admin('PATCH', '/admin/v1/teams/late', { cost_center: 'CC-4711' });
    const { page, done } = await signedIn(gateway.url, '/teams');
    const rows = page.getByRole('table', { name: 'Teams' }).locator('tbody tr');
    await rows.nth(1).waitFor();
    await page.getByRole('search', { name: 'This list' }).getByLabel('Cost center').fill('CC-4711');
    await page.keyboard.press('Enter');
    await rows.nth(1).waitFor({ state: 'detached' });
    expect(await rows.first().innerText()).toContain('late');
    await page.getByRole('search', { name: 'This list' }).getByLabel('Cost center').fill('CC-0');
    await page.keyboard.press('Enter');
    await page.getByText('No team matches').waitFor();
    await settled(page);
    await done();
  });

  it('a change leads to the route, price, token, webhook or sink that was changed', async () => {
    const post = (path: string, body: object) => gateway.admin<Named>('POST', `/admin/v1/${path}`, body);
    await post('providers', { name: 'linked', url: gateway.provider.url, secret: null });
    await post('providers', { name: 'linked-too', url: gateway.provider.url, secret: null });
    await post('routes', { name: 'both', targets: [{ provider: 'linked' }, { provider: 'linked-too' }] });
    const price = await post('prices', { catalog: 'linked', model: 'org/m', input: '1', output: '2' });
    await gateway.admin('PATCH', `/admin/v1/prices/${price.id}`, { input: '3' });
    const url = 'https://receiver.example.com/';
    const hook = await post('webhooks', { url, events: ['key.expiring'] });
    const sink = await post('sinks', { name: 'rows', kind: 'http', url, from: new Date().toISOString() });
    const token = await post('tokens', { name: 'linked-token', role: 'metrics' });
    const lists = [
      ['route', { subject_name: 'both' }, '/providers', 'both'],
      ['price', { subject_id: price.id, action: 'changed' }, '/prices', 'org/m'],
      ['webhook', { subject_id: hook.id }, '/webhooks', 'receiver.example.com'],
      ['sink', { subject_id: sink.id }, '/sinks', 'rows'],
    ] as const;
    for (const [type, filter, path, name] of lists) {
      const { page, done } = await signedIn(
        gateway.url,
        `/audit?${new URLSearchParams({ subject_type: type, ...filter }).toString()}`,
      );
      const entry = page.getByRole('list', { name: 'Changes' }).getByRole('listitem').first();
      await entry.waitFor();
      const summary = entry.locator('summary');
      if ((await summary.count()) > 0) await summary.click();
      await entry.getByRole('link').first().click();
      await page.waitForURL(({ pathname }) => pathname === `/console${path}`);
      const drawer = page.getByRole('dialog').filter({ hasText: name });
      await drawer.waitFor();
      await done();
    }
    const { page, done } = await signedIn(gateway.url, `/audit?subject_id=${token.id}`);
    const links = page.getByRole('list', { name: 'Changes' }).getByRole('link');
    const summary = page.getByRole('list', { name: 'Changes' }).locator('summary').first();
    await summary.click();
    await links.first().click();
    await page.getByRole('row').filter({ hasText: 'linked-token' }).waitFor();
    // What is gone has no link.
    await gateway.admin('DELETE', `/admin/v1/tokens/${token.id}`);
    await page.goto(`${gateway.url}/console/audit?subject_id=${token.id}&action=revoked`);
    await page.getByRole('list', { name: 'Changes' }).getByText('linked-token').first().waitFor();
    expect(await links.count()).toBe(0);
    await done();
  });
}
