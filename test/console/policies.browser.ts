import { allow, deny, Filter, isSigned, newSecret } from '../policies-by-url/filter.js';
import { describeInBrowser, fitsWindow, settled, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';
import { picture } from './picture.js';

/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;

describeInBrowser('policies in the console', () => {
  const gateway = {} as ConsoleGateway;
  let filter: Filter;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
    filter = await new Filter().listen();
    await gateway.admin('POST', '/admin/v1/teams', { name: 'search' });
    await gateway.admin('POST', '/admin/v1/keys', { team: 'search', name: 'ci' });
  });
  afterAll(async () => {
    await gateway.stop();
    await filter.close();
  });
  const shown = () => gateway.admin<object>('GET', '/admin/v1/policies/dlp');

  it('creates one: the form says what is wrong and keeps what was typed', async () => {
    const secret = newSecret();
    const { page, done } = await signedIn(gateway.url, '/policies');
    await page.getByText('No policy is asked').waitFor();
    await page.getByRole('button', { name: 'Create policy' }).click();
    const form = page.getByRole('dialog', { name: 'Create a policy' });
    await form.getByRole('textbox', { name: 'Name' }).fill('dlp');
    await form.getByLabel(/^URL/).fill(filter.url);
    await form.getByLabel(/^Secret/).fill('too short');
    await form.getByLabel('Calls of these teams').first().fill('sea');
    await page.getByRole('option', { name: 'search', exact: true }).click();
    await form.getByLabel('Calls of these keys as well').first().fill('search/ci');
    await page.getByRole('option', { name: 'search/ci' }).click();
    const models = form.getByLabel('Only calls to these models').first();
    await models.fill('gpt-5*');
    await models.press('Enter');
    await form.getByRole('combobox', { name: 'Gets' }).click();
    await page.getByRole('option', { name: 'The request body as well' }).click();
    await form.getByLabel('Timeout, ms').fill('30000');
    await checkAppearance(page, 'policy-form');
    await form.getByRole('button', { name: 'Create policy' }).click();
    await form.getByText('must be whsec_', { exact: false }).first().waitFor();
    await form.getByLabel(/^Secret/).fill(secret);
    await form.getByRole('button', { name: 'Create policy' }).click();
    const drawer = page.getByRole('dialog', { name: 'dlp' });
    await drawer.getByText('team search, key search/ci').waitFor();
    expect(await shown()).toMatchObject({
      applies_to: { teams: ['search'], keys: ['search/ci'], models: ['gpt-5*'] },
      send: 'body',
      timeout_ms: 30_000,
      on_failure: 'reject',
    });
    // Neither the secret nor the path of the URL is on the page.
    for (const hidden of [secret, 'canary-filter-token']) expect(await page.content()).not.toContain(hidden);
    await gateway.admin('POST', '/admin/v1/policies/dlp/test', {});
    expect(isSigned(filter.asked.at(-1)!, secret)).toBe(true);
    await done(/400/);
  });

  it('tests one with a body, changes it, disables and removes it', async () => {
    const { page, done } = await signedIn(gateway.url, '/policies');
    await page.getByRole('row', { name: 'dlp' }).waitFor();
    await picture(page, 'policies');
    await page.getByRole('row', { name: 'dlp' }).getByText('gpt-5*').click();
    const drawer = page.getByRole('dialog', { name: 'dlp' });
    await drawer.getByRole('button', { name: 'Test' }).click();
    const test = page.getByRole('dialog', { name: 'Test dlp' });
    await test.getByLabel('Model').fill('gpt-5-mini');
    await test.getByLabel('Body').fill('{"model":"gpt-5-mini"}');
    filter.respond = deny;
    await test.getByRole('button', { name: 'Test', exact: true }).click();
    await test.getByText('pii_found: No card numbers, please.', { exact: false }).waitFor();
    expect(filter.asked.at(-1)!.body.toString()).toBe('{"model":"gpt-5-mini"}');
    expect(filter.asked.at(-1)!.call).toMatchObject({ model: 'gpt-5-mini' });
    filter.respond = (res) => res.writeHead(500).end();
    await test.getByRole('button', { name: 'Test', exact: true }).click();
    await test.getByText('must respond with status 200', { exact: false }).waitFor();
    filter.respond = allow;
    await test.getByRole('button', { name: 'Test', exact: true }).click();
    await test.getByText('It would be forwarded').waitFor();
    await checkAppearance(page, 'policy-test');
    await test.getByRole('button', { name: 'Cancel' }).click();

    await drawer.getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: 'Edit policy dlp' });
    await form.getByRole('combobox', { name: 'If it does not decide' }).click();
    await page.getByRole('option', { name: 'Forward the call unchecked' }).click();
    await form.getByRole('button', { name: 'Save' }).click();
    await drawer.getByText('Forward the call unchecked').waitFor();
    expect(await shown()).toMatchObject({ on_failure: 'allow', send: 'body', version: 2 });
    await drawer.getByRole('button', { name: 'Disable' }).click();
    await drawer.getByText('It is not asked', { exact: false }).waitFor();
    expect(await shown()).toMatchObject({ enabled: false });
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 860 });
      await settled(page);
      await fitsWindow(page);
      if (PICTURES) await page.screenshot({ path: `${PICTURES}/policy-drawer-${width}.png` });
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    await drawer.getByRole('button', { name: 'Remove' }).click();
    const confirm = page.getByRole('dialog', { name: 'Remove policy dlp' });
    await confirm.getByRole('textbox').fill('dlp');
    await confirm.getByRole('button', { name: 'Remove policy' }).click();
    await page.getByText('No policy is asked').waitFor();
    expect(await gateway.admin('GET', '/admin/v1/policies')).toMatchObject({ data: [] });
    await done();
  });
});
