import type { Page } from 'playwright-core';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { describeInBrowser, openPage, settled, signedIn, signIn, still, until } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';

// In this order: the last test ends the gateway.
describeInBrowser('what was typed, and the console itself, are not lost', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
    for (const name of ['ads', 'search']) await gateway.admin('POST', '/admin/v1/teams', { name });
  });
  afterAll(() => gateway.stop());

  const edit = async (page: Page) => {
    await page.getByRole('row', { name: /ads/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: 'Edit team ads' });
    await form.getByRole('textbox', { name: 'Name' }).waitFor();
    return form;
  };

  it('Escape closes the layer on top alone, and asks before it throws away what was typed', async () => {
    const { page, done } = await signedIn(gateway.url, '/teams');
    const drawer = page.getByRole('dialog', { name: 'ads', exact: true });
    const form = await edit(page);
    await page.keyboard.press('Escape');
    await form.waitFor({ state: 'detached' });
    await settled(page);
    expect(await drawer.isVisible()).toBe(true);

    await drawer.getByRole('button', { name: 'Edit' }).click();
    await form.getByRole('textbox', { name: 'Name' }).fill('advertising');
    await page.keyboard.press('Escape');
    const question = page.getByRole('dialog', { name: 'Discard what you entered?' });
    await question.waitFor();
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'detached' });
    expect(await form.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('advertising');
    await page.keyboard.press('Escape');
    await question.getByRole('button', { name: 'Discard' }).click();
    await form.waitFor({ state: 'detached' });
    await settled(page);
    expect(await drawer.isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
    await done();
  });

  it('says what is wrong once, beside the field, which is in view', async () => {
    const { page, done } = await signedIn(gateway.url, '/teams');
    const form = await edit(page);
    await form.getByRole('textbox', { name: 'Name' }).fill('search');
    for (let budget = 0; budget < 3; budget++)
      await form.getByRole('button', { name: 'Add a budget' }).click();
    const amount = (budget: number) =>
      form.getByRole('group', { name: `Budget ${budget}` }).getByLabel('Amount');
    for (const [budget, period] of [
      [2, 'per day'],
      [3, 'per week'],
    ] as const) {
      await form
        .getByRole('group', { name: `Budget ${budget}` })
        .getByLabel('Period')
        .first()
        .click();
      await page.getByRole('option', { name: period }).filter({ visible: true }).click();
    }
    await amount(1).fill('5,50');
    await amount(2).fill('much');
    await amount(3).fill('1.250,75');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.getByText('Must be an amount in USD').waitFor();
    // What was understood is shown.
    expect([await amount(1).inputValue(), await amount(3).inputValue()]).toEqual(['5.50', '1250.75']);
    expect(await form.getByText('must be an amount').count()).toBe(1);
    expect(await form.getByRole('alert').allInnerTexts()).toEqual([]);
    await until(() => page.evaluate<boolean>('document.activeElement.value === "much"'));

    await amount(2).fill('20');
    await form.getByRole('button', { name: 'Save' }).click();
    // The name is at the top, and the button that was pressed at the bottom.
    await form.getByText('A team with this name already exists').waitFor();
    expect(await form.getByText('already exists').count()).toBe(1);
    expect(await form.getByText('Changed by somebody else').count()).toBe(0);
    const box = await form.getByRole('textbox', { name: 'Name' }).boundingBox();
    expect(box!.y).toBeGreaterThan(0);
    expect(box!.y).toBeLessThan(page.viewportSize()!.height);
    await done(/status of 400/, /status of 409/);
  });

  it('signs in in place when the session has ended, and goes on with the open form', async () => {
    const { page, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console/teams`);
    await signIn(page);
    const form = await edit(page);
    await form.getByRole('textbox', { name: 'Name' }).fill('advertising');
    // As when it has expired, or an administrator has ended it.
    const { data } = await gateway.admin<{ data: { id: string; created_at: string }[] }>(
      'GET',
      '/admin/v1/sessions',
    );
    const [newest] = data.sort((a, b) => b.created_at.localeCompare(a.created_at));
    await gateway.admin('DELETE', `/admin/v1/sessions/${newest!.id}`);
    await form.getByRole('button', { name: 'Save' }).click();
    const again = page.getByRole('dialog', { name: 'Your session has ended' });
    await again.getByLabel('Admin token').fill('wrong-token-0123456789');
    await again.getByRole('button', { name: 'Sign in', exact: true }).click();
    await again.getByText('does not accept this token').waitFor();
    await again.getByLabel('Admin token').fill(ADMIN_TOKEN);
    await again.getByRole('button', { name: 'Sign in', exact: true }).click();
    await again.waitFor({ state: 'detached' });
    expect(await form.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('advertising');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog', { name: 'advertising', exact: true }).waitFor();
    await form.waitFor({ state: 'detached' });
    // The figures of the team were asked for once more by its former name.
    await done(/status of 401/, /status of 404/);
  });

  it('shows an unknown address inside the console, with its navigation', async () => {
    const { page, done } = await signedIn(gateway.url, '/no/such/page');
    await page.getByRole('heading', { level: 1, name: 'Page not found' }).waitFor();
    expect(await page.locator('main').getByText('There is no page at this address').count()).toBe(1);
    await page.getByRole('link', { name: 'Teams', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Teams' }).waitFor();
    await done();
  });

  it('says that a gateway does not respond, and goes on once it does', async () => {
    const { page, done } = await signedIn(gateway.url, '/teams');
    await settled(page);
    await page.clock.install();
    gateway.hang();
    try {
      await page.getByRole('link', { name: 'Prices', exact: true }).click();
      // Whoever waits sees for what.
      await until(async () => {
        await page.clock.runFor(40_000);
        return page.getByText('could not be loaded').isVisible();
      });
      await page.getByRole('heading', { level: 1, name: 'This page could not be shown' }).waitFor();
      expect(await page.getByRole('navigation', { name: 'Pages' }).isVisible()).toBe(true);
    } finally {
      gateway.resume();
    }
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { level: 1, name: 'Prices' }).waitFor();
    await done(/could not be loaded/);
  });

  it('says that the gateway is gone, also on a page that was not opened before', async () => {
    const { page, done } = await signedIn(gateway.url, '/');
    await settled(page);
    await page.getByRole('link', { name: 'Teams', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Teams' }).waitFor();
    await settled(page);
    await gateway.kill();
    await page.getByRole('link', { name: 'System', exact: true }).click();
    await page.getByText('could not be loaded').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('could not be loaded').waitFor();
    expect(page.url()).toContain('/console/system');
    expect(await page.getByRole('navigation', { name: 'Pages' }).isVisible()).toBe(true);
    await page.getByRole('link', { name: 'Teams', exact: true }).click();
    // What was read before stays.
    await page.getByRole('heading', { level: 1, name: 'Teams' }).waitFor();
    // The overview asks many questions, and says once that there is no answer.
    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    // Before, the page may move what is clicked.
    await page.getByText('No connection').first().waitFor();
    await still(page);
    await page.getByRole('button', { name: /^Time range/ }).click();
    await page.getByRole('button', { name: 'Last 7 days' }).click();
    // Figures of this range are not there, and those of before are not shown as if they were.
    await page.getByRole('region', { name: 'Cost', exact: true }).waitFor({ state: 'detached' });
    await page.getByText('No connection').first().waitFor();
    await still(page);
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([expect.stringContaining('No connection')]);
    // What was asked when it was killed is reset.
    await done(/ERR_CONNECTION_(REFUSED|RESET)/, /could not be loaded/);
  });
});
