import { describeInBrowser, SECRETS, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';
import type { Page } from 'playwright-core';

describeInBrowser('accounts of teams in the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
    await gateway.admin('POST', '/admin/v1/teams', { name: 'search' });
    await gateway.admin('POST', '/admin/v1/teams', { name: 'ads' });
    const { url } = gateway.provider;
    await gateway.admin('POST', '/admin/v1/providers', { name: 'shared', url, secret: null });
    await gateway.admin('POST', '/admin/v1/providers', { name: 'of-ads', url, secret: null, team: 'ads' });
  });
  afterAll(() => gateway.stop());

  const openTeam = async (page: Page, name: string) => {
    await page.goto(`${gateway.url}/console/teams?q=${name}`);
    await page.getByRole('row').filter({ hasText: name }).click();
    return page.getByRole('dialog', { name, exact: true });
  };

  it('gives a team an account from its page, which becomes its default', async () => {
    const { page, done } = await signedIn(gateway.url, '/teams');
    const team = await openTeam(page, 'search');
    await team.getByText('No account of its own', { exact: false }).waitFor();
    await team.getByRole('link', { name: 'Add account' }).click();
    const form = page.getByRole('dialog', { name: 'Add a provider' });
    await form.getByLabel('Preset').first().click();
    await page.getByRole('option', { name: 'vLLM' }).click();
    expect(await form.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('vllm-search');
    await form.getByRole('textbox', { name: 'URL' }).fill(gateway.provider.url);
    await form.getByLabel('Default of the team', { exact: false }).waitFor();
    await checkAppearance(page, 'account-form');
    await form.getByRole('button', { name: 'Add and test' }).click();
    await page.getByRole('dialog', { name: 'vllm-search' }).getByText('search', { exact: true }).waitFor();
    expect(await gateway.admin('GET', '/admin/v1/providers/vllm-search')).toMatchObject({
      team: 'search',
      default: false,
    });
    expect(await gateway.admin('GET', '/admin/v1/teams/search')).toMatchObject({
      default_provider: 'vllm-search',
    });
    await done();
  });

  it('shows the accounts of a team, what its keys may use, and where its calls go', async () => {
    const { page, done } = await signedIn(gateway.url, '/teams');
    const team = await openTeam(page, 'search');
    const accounts = team.getByRole('list', { name: 'Accounts' });
    await accounts.getByText('vllm-search').waitFor();
    expect(await accounts.getByText('of-ads').count()).toBe(0);
    await accounts.getByText('default', { exact: true }).waitFor();
    await checkAppearance(page, 'accounts');
    await team.getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: 'Edit team search' });
    await form.getByLabel('Providers and routes', { exact: true }).first().click();
    // Neither offers what is for another team.
    await page.getByRole('option', { name: 'vllm-search' }).waitFor();
    expect(await page.getByRole('option', { name: 'of-ads' }).count()).toBe(0);
    await page.getByRole('option', { name: 'vllm-search' }).click();
    await page.keyboard.press('Escape');
    await checkAppearance(page, 'team-providers');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', '/admin/v1/teams/search')).toMatchObject({
      providers: ['vllm-search'],
      default_provider: 'vllm-search',
    });
    await done();
  });

  it('lets a lead replace the secret of an account, and change nothing else of it', async () => {
    const { url } = gateway.provider;
    const before = 'sk-of-the-account-before-0123456789';
    const name = 'of-search';
    await gateway.admin('POST', '/admin/v1/providers', { name, url, secret: before, team: 'search' });
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      ...{ name: 'lena', role: 'lead', teams: ['search'] },
    });
    SECRETS.add(token);
    const { page, done } = await signedIn(gateway.url, '/teams', { token });
    const team = await openTeam(page, 'search');
    const accounts = team.getByRole('list', { name: 'Accounts' });
    const account = accounts.getByRole('listitem').filter({ hasText: name });
    await account.waitFor();
    expect(await team.getByRole('link', { name: 'Add account' }).count()).toBe(0);
    await account.getByRole('button', { name: 'Replace secret' }).click();
    const form = page.getByRole('dialog', { name: `Replace the secret of ${name}` });
    const after = 'sk-of-the-account-after-0123456789';
    SECRETS.add(after);
    await form.getByLabel('New secret').fill(after);
    await form.getByRole('button', { name: 'Replace secret' }).click();
    await form.waitFor({ state: 'detached' });
    const { data } = await gateway.admin<{ data: object[] }>(
      'GET',
      `/admin/v1/audit?subject_type=provider&subject_name=${name}`,
    );
    expect(data[0]).toMatchObject({ actor: 'token:lena', after: { secret: 'changed' } });
    await done();
  });
});
