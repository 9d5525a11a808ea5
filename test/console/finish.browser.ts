import { describeInBrowser, seriousViolations, settled, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';

const FINISH = 'Finish it: read the response to its end, so that its cost is known';

describeInBrowser('what happens when a client disconnects, in the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
  });
  afterAll(() => gateway.stop());

  it('comes with the preset of a provider, and can be changed', async () => {
    const { page, done } = await signedIn(gateway.url, '/providers?new=1');
    const form = page.getByRole('dialog', { name: 'Add a provider' });
    const rule = form.getByRole('combobox', { name: 'When a client disconnects' });
    const choose = async (preset: string) => {
      await form.getByLabel('Preset').first().click();
      await page.getByRole('option', { name: preset, exact: true }).click();
    };
    expect(await rule.inputValue()).toBe('Cancel the call');
    await choose('Google Gemini');
    expect(await rule.inputValue()).toBe(FINISH);
    await choose('Groq');
    expect(await rule.inputValue()).toBe('Cancel the call');
    await choose('Google Gemini');
    // Nobody listens there: the test request of the page fails at once.
    await form.getByLabel('URL', { exact: false }).first().fill('http://127.0.0.1:9');
    await form.locator('input[type="password"]').fill('gemini-secret-0123456789');
    expect(await seriousViolations(page)).toEqual([]);
    await form.getByRole('button', { name: 'Add and test' }).click();
    const drawer = page.getByRole('dialog', { name: 'gemini' });
    await drawer.getByText('the call is finished').waitFor();
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit provider gemini' });
    await edit.getByRole('combobox', { name: 'When a client disconnects' }).click();
    await page.getByRole('option', { name: 'Cancel the call' }).click();
    await edit.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('the call is cancelled').waitFor();
    await done();
  });

  it('is set for a key, which otherwise does as the provider says', async () => {
    await gateway.admin('POST', '/admin/v1/teams', { name: 'search' });
    const { id } = await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', {
      team: 'search',
      name: 'stopping',
    });
    const { page, done } = await signedIn(gateway.url, `/keys?key=${id}`);
    const drawer = page.getByRole('dialog', { name: 'stopping' });
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog').filter({ hasText: 'When its client disconnects' });
    const rule = edit.getByRole('combobox', { name: 'When its client disconnects' });
    expect(await rule.inputValue()).toBe('As the provider of the call says');
    await rule.click();
    await page.getByRole('option', { name: FINISH }).click();
    await edit.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('the call is finished').waitFor();
    await settled(page);
    expect(await gateway.admin('GET', `/admin/v1/keys/${id}`)).toMatchObject({ on_disconnect: 'finish' });
    await done();
  });
});
