import type { Locator, Page } from 'playwright-core';
import { insertRow } from '../../request-log/rows.js';
import { fitsWindow, SECRETS, settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

interface Named {
  id: string;
}

const budget = (members: object) => ({
  ...{ mode: 'warn', alert_at: [50], unpriced: 'allow', reservation: 'worst' },
  ...members,
});
/** Of every kind that there is. */
const MEMBERS = {
  limits: { requests_per_minute: 600, tokens_per_minute: null, concurrent_requests: null },
  filtered_limits: [
    {
      ...{ providers: ['limited'], models: null },
      ...{ requests_per_minute: 60, tokens_per_minute: null, concurrent_requests: 3 },
    },
  ],
  budgets: [
    budget({ usd: '500.00', period: 'month' }),
    budget({ usd: '30.00', period: 'month', providers: ['limited', 'limited-too'], models: ['gpt-5*'] }),
  ],
  each_end_user: {
    ...{ requests_per_minute: 20, tokens_per_minute: null, concurrent_requests: null },
    budgets: [budget({ usd: '2.00', period: 'day', providers: ['limited'] })],
  },
  each_session: {
    ...{ requests_per_minute: null, tokens_per_minute: 9000, concurrent_requests: null },
    budgets: [budget({ usd: '5.00', period: 'session', models: ['claude-*'] })],
  },
};

/** Limits in the forms of teams, keys and the installation, and the page Limits. */
export function limitFlows(gateway: ConsoleGateway): void {
  beforeAll(async () => {
    const { url } = gateway.provider;
    for (const name of ['limited', 'limited-too'])
      await gateway.admin('POST', '/admin/v1/providers', { name, url, secret: null });
  });

  it('a form keeps every limit and budget that is not edited, and sends no other member', async () => {
    const team = await gateway.admin<Named>('POST', '/admin/v1/teams', { name: 'kept-limits', ...MEMBERS });
    const key = await gateway.admin<Named>('POST', '/admin/v1/keys', {
      ...{ team: 'kept-limits', name: 'ci' },
      ...MEMBERS,
    });
    for (const [path, opened] of [
      [`/teams?open=${team.id}`, `/admin/v1/teams/${team.id}`],
      [`/keys?key=${key.id}`, `/admin/v1/keys/${key.id}`],
    ] as const) {
      const { page, done } = await signedIn(gateway.url, path);
      const form = await edit(page);
      // One amount in each list: each list is sent whole.
      await budgetsOf(form, 'together').nth(0).getByLabel('Amount').fill('501');
      await budgetsOf(form, 'end user').nth(0).getByLabel('Amount').fill('3');
      await budgetsOf(form, 'session').nth(0).getByLabel('Amount').fill('6');
      await form
        .getByRole('group', { name: 'Limits of some calls 1' })
        .getByLabel('Requests per minute')
        .fill('61');
      const sent = page.waitForRequest((request) => request.method() === 'PATCH');
      await form.getByRole('button', { name: 'Save' }).click();
      expect(Object.keys((await sent).postDataJSON() as object).sort()).toEqual([
        ...['budgets', 'each_end_user', 'each_session', 'filtered_limits'],
      ]);
      await form.waitFor({ state: 'detached' });
      const expected = structuredClone(MEMBERS);
      Object.assign(expected.budgets[0]!, { usd: '501.00' });
      Object.assign(expected.each_end_user.budgets[0]!, { usd: '3.00' });
      Object.assign(expected.each_session.budgets[0]!, { usd: '6.00' });
      Object.assign(expected.filtered_limits[0]!, { requests_per_minute: 61 });
      expect(await gateway.admin('GET', opened)).toMatchObject(expected);

      // The order of budgets that were removed before does not shift what others show.
      const again = await edit(page);
      await again.getByRole('button', { name: 'Remove budget 1' }).first().click();
      const left = budgetsOf(again, 'together').nth(0);
      await left.getByText('gpt-5*').waitFor();
      await left.getByText('limited').first().waitFor();
      await again.getByRole('button', { name: 'Save' }).click();
      await again.waitFor({ state: 'detached' });
      expect(await gateway.admin('GET', opened)).toMatchObject({
        ...expected,
        budgets: [MEMBERS.budgets[1]],
      });
      await done();
    }
  });

  it('a new budget is for some providers and models, begins at its period or now, and is told from others', async () => {
    const { id: team_id } = await gateway.admin<Named>('POST', '/admin/v1/teams', {
      name: 'filtered-limits',
      budgets: [{ usd: '500', period: 'month' }],
    });
    await insertRow(gateway.database, new Date(), { team_id, cost_usd: '20.17', provider: 'limited' });
    await insertRow(gateway.database, new Date(), { team_id, cost_usd: '4', provider: 'other' });
    const { page, done } = await signedIn(gateway.url, `/teams?open=${team_id}`);
    const form = await edit(page);
    await form.getByRole('button', { name: 'Add a budget' }).click();
    const added = budgetsOf(form, 'together').nth(1);
    await added.getByLabel('Amount').fill('50');
    await settled(page);
    // The same budget as the first one, until it counts other calls.
    expect(await added.getByText(/^Counts from/).count()).toBe(0);
    await added.getByRole('button', { name: 'Only some calls' }).click();
    await added.getByRole('combobox', { name: 'Only these providers' }).click();
    await page.getByRole('option', { name: 'limited', exact: true }).click();
    await added.getByText(/Counts from the start of its month\. \$20\.17 was spent since/).waitFor();
    await added.getByLabel('Only these models').fill('gpt-5*');
    await page.keyboard.press('Enter');
    await added.getByText('Counts from the start of its month, with what was used since.').waitFor();
    await added.getByRole('combobox', { name: 'Count from' }).click();
    await page.getByRole('option', { name: 'Now' }).click();
    await added.getByText('Counts from when it is saved.').waitFor();
    // A budget of each session has no period to choose.
    await form.getByRole('switch', { name: 'Limit each session separately' }).click();
    await form.getByText('Calls that name no session are not counted.').waitFor();
    const sessions = form.getByRole('group', { name: 'Limits of each session' });
    await sessions.getByRole('button', { name: 'Add a budget' }).click();
    await sessions.getByLabel('Amount').fill('5');
    expect(await sessions.getByLabel('Period').count()).toBe(0);
    await checkAppearance(page);
    const sent = page.waitForRequest((request) => request.method() === 'PATCH');
    await form.getByRole('button', { name: 'Save' }).click();
    expect((await sent).postDataJSON()).toMatchObject({ budgets: [{}, { count_from: 'now' }] });
    await form.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', `/admin/v1/teams/${team_id}`)).toMatchObject({
      budgets: [
        { usd: '500.00', unpriced: 'reject' },
        { usd: '50.00', period: 'month', providers: ['limited'], models: ['gpt-5*'] },
      ],
      each_session: { budgets: [{ usd: '5.00', period: 'session' }] },
    });
    await page.getByText('Budget per month, only limited, gpt-5*').waitFor();
    await settled(page);
    await done();
  });

  it('those of all calls are changed on the page Limits, where rows say whose and which calls', async () => {
    await gateway.admin('PATCH', '/admin/v1/limits/installation', {
      filtered_limits: [{ providers: ['limited'], requests_per_minute: 900 }],
      budgets: [{ usd: '5000', period: 'month', providers: ['limited'] }],
    });
    const { page, done } = await signedIn(gateway.url, '/limits?scope=installation');
    const table = page.getByRole('table', { name: 'Limits' });
    const rows = table.locator('tbody tr');
    const row = (text: string) => rows.filter({ hasText: text });
    await row('Budget per month, only limited').getByText('All calls').waitFor();
    await row('Requests per minute, only limited').waitFor();
    expect(await rows.count()).toBe(2);
    await page.getByRole('button', { name: 'Limits of all calls' }).click();
    const form = page.getByRole('dialog', { name: 'Limits of all calls' });
    await form.getByRole('button', { name: 'Add a budget' }).click();
    const added = budgetsOf(form, 'together').nth(1);
    await added.getByLabel('Amount').fill('7000');
    await added
      .getByText(/Counts from the start of its month\. \$.* was spent since .*, which counts\./)
      .waitFor();
    await form.getByRole('switch', { name: 'Limit each session separately' }).click();
    const sessions = form.getByRole('group', { name: 'Limits of each session' });
    await sessions.getByRole('button', { name: 'Add a budget' }).click();
    await form.getByRole('button', { name: 'Save' }).click();
    await sessions.getByText(/Must be an amount in USD/).waitFor();
    await sessions.getByLabel('Amount').fill('5');
    await checkAppearance(page);
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    await row('Budget for each session').getByText('never').waitFor();
    // Models without a price are allowed by default: many share these budgets.
    expect(await gateway.admin('GET', '/admin/v1/limits/installation')).toMatchObject({
      filtered_limits: [{ providers: ['limited'], requests_per_minute: 900 }],
      budgets: [
        { usd: '5000.00', period: 'month', providers: ['limited'] },
        { usd: '7000.00', period: 'month', unpriced: 'allow' },
      ],
      each_session: { budgets: [{ usd: '5.00', period: 'session', unpriced: 'allow' }] },
    });

    // Their amount is raised in the same form.
    await row('Budget per month, only limited')
      .getByRole('button', { name: /^Raise/ })
      .click();
    await budgetsOf(form, 'together').nth(0).getByLabel('Amount').fill('5001');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    await row('Budget per month, only limited').getByText('of $5,001').waitFor();

    await page.getByRole('combobox', { name: 'Owner' }).click();
    await page.getByRole('option', { name: 'Keys' }).click();
    await row('kept-limits / ci').first().waitFor();
    expect(await row('All calls').count()).toBe(0);
    await page.goto(`${gateway.url}/console/limits`);
    await row('All calls').first().waitFor();
    const texts = await rows.locator('td:first-child').allTextContents();
    expect(texts[0]).toMatch(/^All calls/);
    const first = texts.findIndex((text) => text.startsWith('kept-limits'));
    const isKey = texts
      .slice(first)
      .filter((text) => text.startsWith('kept-limits'))
      .map((text) => text.startsWith('kept-limits / ci'));
    // Those of the team, and then those of its key, with nothing between.
    expect(isKey).toContain(true);
    expect(isKey).toEqual([...isKey].sort());
    const together = texts.slice(first, first + isKey.length);
    expect(together.filter((text) => !text.startsWith('kept-limits'))).toEqual([]);
    await checkAppearance(page);
    for (const width of [768, 1024]) {
      await page.setViewportSize({ width, height: 800 });
      await fitsWindow(page);
    }
    // What the gateway rejected at first.
    await done(/status of 400/);
    await gateway.admin('PATCH', '/admin/v1/limits/installation', {
      ...{ budgets: [], filtered_limits: [], each_session: null },
    });
  });

  it('the page Limits is a tree; each limit has an address, and those of a provider or a model are found', async () => {
    const budgets = [budget({ usd: '11.00', period: 'day', models: ['Tree-*'], providers: ['limited'] })];
    const { id: groupId } = await gateway.admin<Named>('POST', '/admin/v1/groups', {
      ...{ name: 'tree', budgets: [budget({ usd: '10.00', period: 'day' })] },
    });
    await gateway.admin('POST', '/admin/v1/teams', { name: 'in-tree', group: 'tree', budgets });
    const key = await gateway.admin<Named & { key: string }>('POST', '/admin/v1/keys', {
      ...{ team: 'in-tree', name: 'ci', budgets: [budget({ usd: '12.00', period: 'week' })] },
      each_end_user: { budgets: [budget({ usd: '2.00', period: 'day' })] },
    });
    await gateway.admin('PATCH', '/admin/v1/limits/installation', {
      budgets: [budget({ usd: '5000', period: 'month', mode: 'block' })],
    });
    const { page, done } = await signedIn(gateway.url, '/limits');
    const rows = page.getByRole('table', { name: 'Limits' }).locator('tbody tr');
    await rows.filter({ hasText: 'Group tree' }).waitFor();
    const owners = rows.locator('[data-depth]');
    const shown = async () => {
      const texts = await owners.allInnerTexts();
      const depths = await Promise.all((await owners.all()).map((owner) => owner.getAttribute('data-depth')));
      return texts.map((text, i) => [depths[i]!, text.replace(/\s+/g, ' ')] as const);
    };
    const tree = await shown();
    const at = tree.findIndex(([, text]) => text.startsWith('Group tree'));
    expect([tree[0], ...tree.slice(at, at + 4)]).toEqual([
      ['0', 'All calls Budget per month'],
      ['1', 'Group tree Budget per day, only warns'],
      ['2', 'in-tree Budget per day, only limited, Tree-*, only warns'],
      ['3', 'in-tree / ci Budget per week, only warns'],
      ['4', 'in-tree / ci Budget per day for each end user, only warns'],
    ]);
    await checkAppearance(page);
    await page.getByText('By urgency', { exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get('view') === 'urgency');
    expect(new Set((await shown()).map(([depth]) => depth))).toEqual(new Set(['0']));

    await page.goto(`${gateway.url}/console/limits`);
    const search = page.getByRole('search', { name: 'This list' });
    // What is gone then was there before.
    await rows.filter({ hasText: 'Group tree' }).waitFor();
    await search.getByLabel('Model').fill('tree-1');
    await search.getByLabel('Provider').fill('limited');
    await page.keyboard.press('Enter');
    await rows.filter({ hasText: 'Group tree' }).waitFor({ state: 'detached' });
    expect((await shown()).map(([, text]) => text)).toEqual([
      'in-tree Budget per day, only limited, Tree-*, only warns',
    ]);

    // Each has an address, also one of a group.
    await page.goto(`${gateway.url}/console/limits`);
    await page.getByRole('link', { name: 'Budget per day, only warns of Group tree' }).click();
    await rows.filter({ hasText: 'in-tree' }).first().waitFor({ state: 'detached' });
    const { data } = await gateway.admin<{ data: { id: string; group: string | null }[] }>(
      'GET',
      '/admin/v1/limits?scope=group',
    );
    const { id } = data.find(({ group }) => group === 'tree')!;
    expect(new URL(page.url()).searchParams.get('id')).toBe(id);
    await page.reload();
    await rows.filter({ hasText: 'Group tree' }).waitFor();
    expect(await rows.count()).toBe(1);

    // To the form that has the amount.
    await rows.getByRole('link', { name: 'Raise budget per day of Group tree' }).click();
    const form = page.getByRole('dialog', { name: 'Edit group tree' });
    await form.getByRole('group', { name: 'Budget 1' }).getByLabel('Amount').fill('20');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.has('edit')).toBe(false);
    expect(await gateway.admin('GET', `/admin/v1/groups/${groupId}`)).toMatchObject({
      budgets: [{ usd: '20.00' }],
    });
    // The holder of a key sees which limits it shares, and whether they reject calls, and no amounts.
    await page.goto(`${gateway.url}/console/key`);
    SECRETS.add(key.key);
    await page.getByLabel('Gateway key', { exact: true }).fill(key.key);
    const shared = page.getByRole('listitem').filter({ hasText: 'All calls: Budget per month' });
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await shared.getByText(/^(Rejects|Admits) calls, resets /).waitFor();
    expect(await page.getByRole('listitem').filter({ hasText: 'Team: Budget per day' }).count()).toBe(1);
    for (const one of await page.getByRole('listitem').allInnerTexts())
      if (one.startsWith('All calls') || one.startsWith('Group')) expect(one).not.toMatch(/\$/);
    await checkAppearance(page);
    await done();
    await gateway.admin('PATCH', '/admin/v1/limits/installation', { budgets: [] });
  });

  it('viewers and members see no form of all calls', async () => {
    for (const [role, teams] of [
      ['viewer', undefined],
      ['team', ['kept-limits']],
    ] as const) {
      const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
        ...{ name: `limits ${role}`, role, ...(teams && { teams }) },
      });
      const { page, done } = await signedIn(gateway.url, '/limits', { token });
      await page.getByRole('table', { name: 'Limits' }).getByText('kept-limits').first().waitFor();
      expect(await page.getByRole('button', { name: 'Limits of all calls' }).count()).toBe(0);
      await page.getByRole('combobox', { name: 'Owner' }).click();
      await page.getByRole('option', { name: 'Teams' }).waitFor();
      const options = await page.getByRole('option').filter({ visible: true }).allInnerTexts();
      expect(options).toEqual([...(role === 'viewer' ? ['All calls', 'Groups'] : []), 'Teams', 'Keys']);
      await done();
    }
  });
}

async function edit(page: Page): Promise<Locator> {
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  const form = page.getByRole('dialog', { name: /^Edit / });
  await form.getByText('Limits of all calls together').waitFor();
  return form;
}

/** The budgets of a part of the form. */
function budgetsOf(form: Locator, part: 'together' | 'end user' | 'session'): Locator {
  return form
    .getByRole('group', { name: new RegExp(`^Limits of .*${part}$`) })
    .getByRole('group', { name: /^Budget / });
}
