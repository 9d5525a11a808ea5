import { insertRow } from '../../request-log/rows.js';
import { settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

/** Groups of teams: below the teams, in the form of a team, and in usage. */
export function groupFlows(gateway: ConsoleGateway): void {
  it('are created with teams, changed, and shown with what their teams cost', async () => {
    const teams = ['grouped-a', 'grouped-b'];
    for (const name of teams) {
      const { id } = await gateway.admin<{ id: string }>('POST', '/admin/v1/teams', { name });
      await insertRow(gateway.database, new Date(), { team_id: id, cost_usd: '1.25' });
    }
    const { page, done } = await signedIn(gateway.url, '/teams');
    await page.getByRole('button', { name: 'Create group' }).click();
    const form = page.getByRole('dialog', { name: 'Create a group' });
    await form.getByRole('textbox', { name: 'Name' }).fill('dev');
    for (const name of teams) {
      await form.getByRole('combobox', { name: 'Teams' }).fill(name);
      await page.getByRole('option', { name }).click();
    }
    await form.getByLabel('Note').fill('Departments A and B');
    await checkAppearance(page);
    await form.getByRole('button', { name: 'Create group' }).click();
    await form.waitFor({ state: 'detached' });
    const row = page.getByRole('table', { name: 'Groups' }).getByRole('row').filter({ hasText: 'dev' });
    await row.getByText('grouped-a, grouped-b').waitFor();
    await row.getByText('$2.50').waitFor();
    expect(await gateway.admin('GET', '/admin/v1/groups/dev')).toMatchObject({
      note: 'Departments A and B',
      teams,
    });
    await checkAppearance(page);

    // The teams of the group, and one that leaves it.
    await row.getByRole('link', { name: 'grouped-a, grouped-b' }).click();
    const ofTeams = page.getByRole('table', { name: 'Teams' });
    await ofTeams.getByRole('row').filter({ hasText: 'default' }).waitFor({ state: 'detached' });
    await ofTeams.getByRole('row').filter({ hasText: 'grouped-a' }).click();
    const drawer = page.getByRole('dialog', { name: 'grouped-a' });
    await drawer.getByText('dev', { exact: true }).waitFor();
    await drawer.getByRole('button', { name: 'Edit', exact: true }).click();
    const edit = page.getByRole('dialog', { name: 'Edit team grouped-a' });
    await edit.getByRole('combobox', { name: 'Group' }).click();
    await page.getByRole('option', { name: 'None' }).click();
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await row.getByRole('link', { name: 'grouped-b', exact: true }).waitFor();
    expect(await gateway.admin('GET', '/admin/v1/teams/grouped-a')).toMatchObject({ group: null });
    await done();
  });

  it('have budgets, and all calls have some for a provider, which the page Limits shows', async () => {
    await gateway.admin('POST', '/admin/v1/providers', {
      ...{ name: 'of-budget', url: 'http://127.0.0.1:9', secret: null },
    });
    const { page, done } = await signedIn(gateway.url, '/teams');
    await page.getByRole('table', { name: 'Groups' }).getByText('dev', { exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Edit group dev' });
    await form.getByRole('button', { name: 'Add a budget' }).click();
    await form.getByRole('group', { name: 'Budget 1' }).getByLabel('Amount').fill('100');
    await checkAppearance(page);
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', '/admin/v1/groups/dev')).toMatchObject({
      budgets: [{ usd: '100.00', period: 'month', unpriced: 'allow' }],
    });
    await page.getByRole('link', { name: 'Limits', exact: true }).click();
    await page.getByRole('button', { name: 'Limits of all calls' }).click();
    const all = page.getByRole('dialog', { name: 'Limits of all calls' });
    await all.getByRole('button', { name: 'Add a budget' }).click();
    const budget = all.getByRole('group', { name: 'Budget 1' });
    await budget.getByLabel('Amount').fill('5000');
    await budget.getByRole('button', { name: 'Only some calls' }).click();
    await budget.getByRole('combobox', { name: 'Only these providers' }).click();
    await page.getByRole('option', { name: 'of-budget' }).click();
    await checkAppearance(page);
    await all.getByRole('button', { name: 'Save' }).click();
    await all.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', '/admin/v1/limits/installation')).toMatchObject({
      budgets: [{ usd: '5000.00', providers: ['of-budget'] }],
    });
    const rows = page.getByRole('table', { name: 'Limits' }).getByRole('row');
    await rows.filter({ hasText: 'All calls' }).getByText('Budget per month, only of-budget').waitFor();
    await rows
      .filter({ hasText: 'Group dev' })
      .getByRole('link', { name: 'Group dev', exact: true })
      .waitFor();
    await checkAppearance(page);
    await page.getByRole('combobox', { name: 'Owner' }).click();
    await page.getByRole('option', { name: 'Groups' }).click();
    await rows.filter({ hasText: 'All calls' }).waitFor({ state: 'detached' });
    await gateway.admin('PATCH', '/admin/v1/limits/installation', { budgets: [] });
    await gateway.admin('PATCH', '/admin/v1/groups/dev', { budgets: [] });
    await done();
  });

  it('add the usage up, and lead to that of their teams', async () => {
    const { page, done } = await signedIn(gateway.url, '/usage?range=1h&by=group');
    const row = page.getByRole('row').filter({ hasText: 'dev' });
    await row.getByText('$1.25').first().waitFor();
    await page.getByRole('row').filter({ hasText: 'No group' }).waitFor();
    await row.getByRole('link', { name: 'dev' }).click();
    await page.getByRole('button', { name: 'Remove filter Group: dev' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'grouped-b' }).waitFor();
    expect(await page.getByRole('row').filter({ hasText: 'grouped-a' }).count()).toBe(0);
    await checkAppearance(page);
    await done();
  });

  it('are deleted once no team is in them, and not offered to members', async () => {
    await gateway.admin('PATCH', '/admin/v1/teams/grouped-b', { group: null });
    const { page, done } = await signedIn(gateway.url, '/teams');
    await page.getByRole('table', { name: 'Groups' }).getByText('dev', { exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Edit group dev' });
    await form.getByRole('button', { name: 'Delete' }).click();
    const confirm = page.getByRole('dialog', { name: 'Delete group dev' });
    await confirm.getByRole('textbox').fill('dev');
    await confirm.getByRole('button', { name: 'Delete group' }).click();
    await page.getByText('There is no group').waitFor();
    await settled(page);
    await done();

    await gateway.admin('POST', '/admin/v1/groups', { name: 'ops', teams: ['grouped-a'] });
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      ...{ name: 'member of a group', role: 'team', teams: ['grouped-a'] },
    });
    const member = await signedIn(gateway.url, '/teams', { token });
    await member.page.getByRole('row').filter({ hasText: 'grouped-a' }).getByText('ops').waitFor();
    await settled(member.page);
    expect(await member.page.getByRole('heading', { name: 'Groups' }).count()).toBe(0);
    await member.done();
  });
}
