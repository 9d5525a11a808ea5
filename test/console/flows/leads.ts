import type { Page } from 'playwright-core';
import { insertRow } from '../../request-log/rows.js';
import { openPage, SECRETS, settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

/** Those who manage the keys of a team, those who have keys of their own there, and those who may do nothing. */
export function leadFlows(gateway: ConsoleGateway): void {
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const token = async (name: string, role: string) => {
    const body = { name, role, teams: ['led'] };
    const made = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', body);
    SECRETS.add(made.token);
    return made.token;
  };
  let production: string;
  beforeAll(async () => {
    await gateway.admin('POST', '/admin/v1/teams', {
      name: 'led',
      budgets: [{ usd: '100', period: 'month' }],
      self_service: { keys_per_user: 2, max_days: 30, budget_usd_per_month: '5' },
    });
    await gateway.admin('POST', '/admin/v1/teams', { name: 'elsewhere' });
    const provider = { name: 'called', url: gateway.provider.url, secret: null };
    await gateway.admin('POST', '/admin/v1/providers', provider);
    const key = { team: 'led', name: 'production' };
    production = (await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', key)).id;
    const { id: team_id } = await gateway.admin<{ id: string }>('GET', '/admin/v1/teams/led');
    const calls = { team_id, key_id: production };
    for (const model of ["'; touch pwned; '", "'; touch pwned; '", 'their-model'])
      await insertRow(gateway.database, new Date(), { ...calls, provider: 'called', model });
  });
  afterAll(async () => {
    for (const name of ['lena', 'mia']) {
      const { data } = await gateway.admin<{ data: { id: string; name: string }[] }>(
        'GET',
        '/admin/v1/tokens',
      );
      const found = data.find((one) => one.name === name);
      if (found) await gateway.admin('DELETE', `/admin/v1/tokens/${found.id}`);
    }
  });

  it('a lead manages the keys of the team, and is asked for nothing that only administrators set', async () => {
    const { page, done } = await signedIn(gateway.url, `/keys?key=${production}`, {
      token: await token('lena', 'lead'),
    });
    const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    const names = (await links.allInnerTexts()).filter((name) => name !== 'Postern');
    expect(names).toEqual(['Overview', 'Usage', 'Requests', 'Keys', 'Teams', 'Limits']);
    const drawer = page.getByRole('dialog', { name: 'led / production' });
    await drawer.getByText('None of its own. Those of its team apply:').waitFor();
    await button(page, 'Edit').click();
    const form = page.getByRole('dialog', { name: 'Edit key production' });
    await form.getByLabel('Contact').waitFor();
    for (const label of ['Cost center', 'Endpoints', 'May open WebSockets'])
      expect([label, await form.getByLabel(label).count()]).toEqual([label, 0]);
    await form.getByLabel('Contact').fill('lena@example.com');
    // A lead sees no list of providers: those that the team has called are offered, and others are typed.
    const providers = form.getByLabel('Providers and routes').first();
    await providers.click();
    await page.getByRole('option', { name: 'called', exact: true }).click();
    await providers.fill('unknown');
    await providers.press('Enter');
    await form.getByRole('button', { name: 'Add a budget' }).first().click();
    await form.getByLabel('Amount').first().fill('101');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.getByText('must be at most that of the team: 100.00 USD per month').first().waitFor();
    await checkAppearance(page);
    await form.getByLabel('Amount').first().fill('50');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.getByText(/no provider or route unknown/).waitFor();
    await providers.press('Backspace');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', `/admin/v1/keys/${production}`)).toMatchObject({
      contact: 'lena@example.com',
      providers: ['called'],
      budgets: [{ usd: '50.00', period: 'month' }],
    });
    await button(page, 'Rotate').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate key' }).click();
    const secret = page.getByRole('region', { name: 'secret' });
    SECRETS.add((await secret.innerText()).trim());
    // The model that was called most, but for names that a shell would run.
    const curl = page.getByRole('tabpanel');
    await curl.getByText('"model": "their-model"').waitFor();
    expect(await curl.innerText()).not.toContain('pwned');
    await button(page, 'I have copied it').click();

    await page.goto(`${gateway.url}/console/teams`);
    await page.getByRole('row').filter({ hasText: 'led' }).click();
    await button(page, 'Edit').click();
    const team = page.getByRole('dialog', { name: 'Edit team led' });
    await team.getByLabel('Keys of each').waitFor();
    for (const label of ['Name', 'Contact', 'Requests per minute'])
      expect([label, await team.getByLabel(label).count()]).toEqual([label, 0]);
    await team.getByLabel('Keys of each').fill('3');
    await team.getByLabel("Providers and routes of members' keys").first().fill('called');
    await page.keyboard.press('Enter');
    await checkAppearance(page);
    await team.getByRole('button', { name: 'Save' }).click();
    await team.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', '/admin/v1/teams/led')).toMatchObject({
      self_service: { keys_per_user: 3, providers: ['called'] },
    });
    await done(/400/);
  });

  it('a member sees which life, budget and number of keys apply before a key is created', async () => {
    const { page, done } = await signedIn(gateway.url, '/keys?new=1', { token: await token('mia', 'team') });
    const form = page.getByRole('dialog', { name: 'Create a key' });
    await form.getByText('0 of 3').waitFor();
    await form.getByText(/at the latest, 30 days from now/).waitFor();
    await form.getByText(/\$5 a month; the next month begins/).waitFor();
    await checkAppearance(page);
    await form.getByRole('textbox', { name: 'Name' }).fill('of mia');
    await form.getByRole('button', { name: 'Create key' }).click();
    SECRETS.add((await page.getByRole('region', { name: 'secret' }).innerText()).trim());
    await button(page, 'I have copied it').click();
    await page.getByRole('row').filter({ hasText: 'of mia' }).click();
    // A date, not only "in 30 days".
    const expires = page.getByRole('dialog', { name: 'led / of mia' }).getByText(/\(in \d+ days?\)/);
    await expires.waitFor();
    expect(await expires.innerText()).toMatch(/\w{3} \d{1,2}/);
    await page.goto(`${gateway.url}/console/keys?new=1`);
    await form.getByText('1 of 3').waitFor();
    await done();
  });

  it('a key says truly that neither it nor its team has limits', async () => {
    const body = { team: 'elsewhere', name: 'unlimited' };
    const { id } = await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', body);
    const { page, done } = await signedIn(gateway.url, `/keys?key=${id}`);
    await page.getByText('None: neither the key nor its team has limits or budgets.').waitFor();
    await settled(page);
    await done();
  });

  it('whom single sign-on refuses sees who they are, and which groups came', async () => {
    gateway.issuer.user = 'stranger';
    const { page, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console`);
    await page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
    await page.getByText('sso:sub:stranger').waitFor();
    await page.getByText('staff', { exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Ask an administrator' }).waitFor();
    await page.getByRole('link', { name: 'Back to the console' }).click();
    await page.getByLabel('Admin token').waitFor();
    await done(/request to http:\/\/127.0.0.1/, /status of 403/);
  });
}
