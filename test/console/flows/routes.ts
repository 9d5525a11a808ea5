import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SECRETS, seriousViolations, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { callWith } from '../model-provider.js';
import { checkAppearance } from './appearance.js';

const CLIENT_SECRET = 'client-secret-of-the-console';

/** Routes, attempts, credentials of clouds, and what a key may do besides. */
export function routeFlows(gateway: ConsoleGateway): void {
  // It asks for a rest that is longer than any test.
  const busy = createServer((_, res) => res.writeHead(429, { 'retry-after': '600' }).end());
  afterAll(() => {
    busy.closeAllConnections();
    busy.close();
  });
  beforeAll(async () => {
    const { admin, provider } = gateway;
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    const add = (name: string, url: string) =>
      admin('POST', '/admin/v1/providers', { name, url, secret: 'sk-0123456789', catalog: null });
    await add('first-choice', `http://127.0.0.1:${(busy.address() as AddressInfo).port}`);
    await add('second-choice', provider.url);
  });

  it('adds a route, keeps what was typed when the gateway rejects it, orders its targets, and removes it', async () => {
    const { page, done } = await signedIn(gateway.url, '/providers');
    await page.getByRole('button', { name: 'Add route' }).click();
    const form = page.getByRole('dialog', { name: 'Add a route' });
    const choose = async (target: number, name: string) => {
      await form.getByLabel(`Target ${target}`, { exact: true }).last().click();
      await page.getByRole('option', { name, exact: true }).click();
    };
    await form.getByLabel('Name', { exact: false }).first().fill('second-choice');
    await choose(1, 'second-choice');
    await choose(2, 'first-choice');
    await form.getByLabel('Model names at the provider (target 1)').fill('a-model');
    await form.getByText('Two names with = between them: a-model').waitFor();
    expect(await form.getByRole('button', { name: 'Add route' }).isDisabled()).toBe(true);
    await form.getByLabel('Model names at the provider (target 1)').fill('a-model = its-model');
    await form.getByRole('button', { name: 'Move target 2 up' }).click();
    await checkAppearance(page);
    await form.getByRole('button', { name: 'Add route' }).click();
    await form
      .getByText('a route or a provider with this name already exists', { exact: false })
      .first()
      .waitFor();
    await form.getByLabel('Name', { exact: false }).first().fill('fallback');
    await form.getByRole('button', { name: 'Add route' }).click();
    const drawer = page.getByRole('dialog', { name: 'fallback' });
    await drawer.getByText('a-model is sent as its-model').waitFor();
    expect(await gateway.admin('GET', '/admin/v1/routes/fallback')).toMatchObject({
      targets: [
        { provider: 'first-choice', models: null },
        { provider: 'second-choice', models: { 'a-model': 'its-model' } },
      ],
      strategy: 'order',
      retry_on: ['connect', 'refused'],
      max_attempts: 2,
    });
    await checkAppearance(page);
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit route fallback' });
    await edit.getByLabel('It responds with 500', { exact: false }).check();
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', '/admin/v1/routes/fallback')).toMatchObject({
      retry_on: ['connect', 'refused', 'failed'],
      version: 2,
    });
    await drawer.getByRole('button', { name: 'Remove' }).click();
    const confirm = page.getByRole('dialog', { name: 'Remove route fallback' });
    expect(await confirm.getByRole('button', { name: 'Remove route' }).isDisabled()).toBe(true);
    await confirm.getByLabel('Type fallback to confirm').fill('fallback');
    await confirm.getByRole('button', { name: 'Remove route' }).click();
    await page.getByText('There is no route').waitFor();
    // The name that was taken.
    await done(/409/);
  });

  it('shows a target that rests, and the attempts of a call', async () => {
    const targets = [{ provider: 'first-choice' }, { provider: 'second-choice' }];
    await gateway.admin('POST', '/admin/v1/routes', { name: 'resting', targets });
    await gateway.admin('POST', '/admin/v1/teams', { name: 'routed' });
    const { key } = await gateway.admin<{ key: string }>('POST', '/admin/v1/keys', {
      team: 'routed',
      name: 'routed',
      providers: ['resting'],
    });
    expect(await callWith(gateway.url, key)).toBe(200);
    const { page, done } = await signedIn(gateway.url, '/providers');
    await page
      .getByRole('row', { name: /resting/ })
      .getByText('rests', { exact: false })
      .waitFor();
    const id = await until(async () => {
      const [row] = await gateway.database.query<{ id: string }>(
        'SELECT id FROM request_log WHERE attempt = 2 ORDER BY started_at LIMIT 1',
      );
      return row?.id;
    });
    await page.goto(`${gateway.url}/console/requests?range=1h&id=${id}`);
    const table = page.getByRole('dialog').getByRole('table', { name: 'Attempts' });
    await table.waitFor();
    const rows = await table.getByRole('row').allInnerTexts();
    expect(rows).toHaveLength(3);
    expect(rows[1]).toMatch(/1\s+first-choice\s+429[^]*etried/);
    expect(rows[2]).toMatch(/2\s+second-choice\s+200/);
    await checkAppearance(page);
    await table.getByRole('link', { name: 'first-choice' }).click();
    await page.getByRole('dialog').getByText('429', { exact: false }).first().waitFor();
    await done();
  });

  it('adds a provider with access tokens; its settings are shown, its secret is not', async () => {
    SECRETS.add(CLIENT_SECRET);
    const { page, done } = await signedIn(gateway.url, '/providers?new=1');
    const form = page.getByRole('dialog', { name: 'Add a provider' });
    await form.getByLabel('Preset').first().click();
    await page.getByRole('option', { name: 'Azure OpenAI (v1 API) with Entra ID' }).click();
    expect(await form.getByLabel('Scope').inputValue()).toBe('https://cognitiveservices.azure.com/.default');
    await form.getByLabel('URL', { exact: false }).first().fill('https://mine.openai.azure.com/openai');
    await form.getByLabel('Client ID').fill('postern');
    await form.locator('input[type="password"]').fill(CLIENT_SECRET);
    await form.getByRole('button', { name: 'Add and test' }).click();
    // The token URL is missing: what was typed stays.
    await form.getByText('such as https://login', { exact: false }).first().waitFor();
    expect(await form.getByLabel('Client ID').inputValue()).toBe('postern');
    expect(await seriousViolations(page)).toEqual([]);
    await form.getByLabel('Token URL').fill('http://127.0.0.1:9/token');
    await form.getByRole('button', { name: 'Add and test' }).click();
    const drawer = page.getByRole('dialog', { name: 'azure-entra' });
    await drawer.getByText('http://127.0.0.1:9/token').waitFor();
    await drawer.getByText('Access tokens of an OAuth 2 client').waitFor();
    await checkAppearance(page);
    await done(/400/);
  });

  it('has no secret for a provider whose callers have their own, and keeps none when it becomes one', async () => {
    const { page, done } = await signedIn(gateway.url, '/providers?open=second-choice');
    await page.getByRole('dialog').getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: 'Edit provider second-choice' });
    await form.getByLabel('Authentication').first().click();
    await page.getByRole('option', { name: 'Callers send their own credential' }).click();
    await form.locator('input[type="password"]').waitFor({ state: 'detached' });
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', '/admin/v1/providers/second-choice')).toMatchObject({
      auth: 'client',
      secret_state: 'none',
    });
    await done();
  });

  it('sets WebSockets and the response cache of a key', async () => {
    const { id } = await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', {
      team: 'routed',
      name: 'cached',
    });
    const { page, done } = await signedIn(gateway.url, `/keys?key=${id}`);
    await page.getByRole('dialog').getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('dialog', { name: 'Edit key cached' });
    await form.getByRole('switch', { name: 'May open WebSockets', exact: false }).click({ force: true });
    await form.getByRole('switch', { name: 'Response cache', exact: false }).click({ force: true });
    await form.getByLabel('Hours for which a response is kept').fill('2');
    await checkAppearance(page);
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', `/admin/v1/keys/${id}`)).toMatchObject({
      websockets: true,
      cache: { ttl_seconds: 7_200, shared: 'key' },
    });
    await done();
  });
}
