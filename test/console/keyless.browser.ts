import { describeInBrowser, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';

/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;
const ROLE = 'arn:aws:iam::111122223333:role/postern';

describeInBrowser('providers without a stored secret in the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
  });
  afterAll(() => gateway.stop());

  it('adds one: the form asks for what its identity needs, and for no secret', async () => {
    const { page, done } = await signedIn(gateway.url, '/providers?new=1');
    const form = page.getByRole('dialog', { name: 'Add a provider' });
    await form.getByLabel('Preset').first().click();
    await page.getByRole('option', { name: 'Amazon Bedrock' }).click();
    await form.locator('input[type="password"]').waitFor();
    await form.getByLabel('Credential', { exact: true }).first().click();
    await page.getByRole('option', { name: 'Role that an identity token may assume' }).click();
    await form.locator('input[type="password"]').waitFor({ state: 'detached' });
    await form.getByLabel('Region').fill('eu-central-1');
    await form.getByLabel('Identity token').fill('aws');
    await checkAppearance(page, 'keyless');
    await form.getByRole('button', { name: 'Add and test' }).click();
    // The role is missing: what was typed stays.
    await form.getByText('is needed; the settings are', { exact: false }).first().waitFor();
    expect(await form.getByLabel('Identity token').inputValue()).toBe('aws');
    await form.getByLabel('Role', { exact: false }).last().fill(ROLE);
    await form.getByRole('button', { name: 'Add and test' }).click();
    const drawer = page.getByRole('dialog', { name: 'bedrock' });
    await drawer.getByText('Role that an identity token may assume').waitFor();
    await drawer.getByText(ROLE).waitFor();
    await drawer.getByText('IDENTITY_TOKEN_FILES names no identity token', { exact: false }).waitFor();
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/keyless-drawer.png` });
    expect(await gateway.admin('GET', '/admin/v1/providers/bedrock')).toMatchObject({
      secret_state: 'none',
      auth_settings: { credentials: 'web-identity', identity_token: 'aws', role_arn: ROLE },
    });
    await done(/400/);
  });

  it('takes the place of a stored secret, which is deleted', async () => {
    await gateway.admin('POST', '/admin/v1/providers', {
      ...{ name: 'swapped', url: 'https://my.openai.azure.com/openai', auth: 'oauth2' },
      secret: 'a-client-secret-that-is-long-enough',
      auth_settings: {
        ...{ token_url: 'https://login.microsoftonline.com/t/oauth2/v2.0/token', client_id: 'postern' },
        scope: 'https://cognitiveservices.azure.com/.default',
      },
    });
    const { page, done } = await signedIn(gateway.url, '/providers?open=swapped');
    await page.getByRole('dialog').getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: 'Edit provider swapped' });
    await form.getByLabel('Credential', { exact: true }).first().click();
    await page.getByRole('option', { name: 'Managed identity of the machine (Azure)' }).click();
    await form.getByLabel('Client ID').fill('');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    const { auth_settings, secret_state } = await gateway.admin<{
      auth_settings: object;
      secret_state: string;
    }>('GET', '/admin/v1/providers/swapped');
    expect([secret_state, auth_settings]).toEqual([
      'none',
      { source: 'metadata', scope: 'https://cognitiveservices.azure.com/.default' },
    ]);
    await done();
  });
});
