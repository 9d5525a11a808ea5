import { describeInBrowser, fitsWindow, openPage, seriousViolations, signedIn } from './browser.js';
import { poll, startDevice } from '../identity/device-flow.js';
import { picture } from './picture.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';

/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;

describeInBrowser('people in the console', () => {
  const gateway = {} as ConsoleGateway;
  let personId: string;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway({ SIGN_IN: 'on' }));
    await gateway.admin('POST', '/admin/v1/teams', { name: 'search' });
    const key = { team: 'search', name: 'jane@example.com', secret: false };
    const { id: keyId } = await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', key);
    const person = await gateway.database.find<{ id: string }>(
      `INSERT INTO person (id, issuer, subject, name, email, last_sign_in_at)
       VALUES (gen_random_uuid(), 'https://login.example.com', '2482', 'Jane Doe', 'jane@example.com', now()) RETURNING id`,
    );
    personId = person.id;
    await gateway.database.query(
      `INSERT INTO sign_in (id, person_id, key_id, surface, client_ip, program, expires_at, spent_refused_at)
       SELECT gen_random_uuid(), $1, $2, surface, '192.0.2.7', 'claude-code/2.1.330', now() + interval '30 days',
              CASE surface WHEN 'claude_code' THEN now() END
       FROM unnest(ARRAY['claude_code', 'postern']) AS surface`,
      [personId, keyId],
    );
  });
  afterAll(() => gateway.stop());
  const shown = () =>
    gateway.admin<{ ended_at: string | null; live_sign_ins: number }>('GET', `/admin/v1/people/${personId}`);

  it('shows what a person has, and ends a sign-in and the person', async () => {
    const { page, done } = await signedIn(gateway.url, '/people');
    await page.getByRole('row', { name: 'Jane Doe' }).waitFor();
    await picture(page, 'people');
    await page.getByRole('row', { name: 'Jane Doe' }).getByText('jane@example.com').click();
    const drawer = page.getByRole('dialog', { name: 'Jane Doe' });
    await drawer.getByText('was sent again', { exact: false }).first().waitFor();
    await checkAppearance(page, 'person');
    const signIns = drawer.getByRole('region', { name: 'Sign-ins from clients' });
    await signIns.getByRole('button', { name: 'End' }).first().click();
    await signIns.getByText('ended by hand', { exact: false }).waitFor();
    expect((await shown()).live_sign_ins).toBe(1);

    await drawer.getByRole('button', { name: 'End', exact: true }).first().click();
    const confirm = page.getByRole('dialog', { name: 'End person Jane Doe' });
    await confirm.getByRole('textbox').fill('Jane Doe');
    await confirm.getByRole('button', { name: 'End person' }).click();
    await drawer.getByRole('button', { name: 'Let in again' }).waitFor();
    expect(await shown()).toMatchObject({ ended_at: expect.any(String) as string, live_sign_ins: 0 });
    await drawer.getByRole('button', { name: 'Let in again' }).click();
    await drawer.getByRole('button', { name: 'End', exact: true }).first().waitFor();
    expect((await shown()).ended_at).toBeNull();

    await gateway.database.query(
      `UPDATE gateway_key SET origin = 'sign_in', person_id = $1, revoked_at = now() WHERE name = 'jane@example.com'`,
      [personId],
    );
    await page.reload();
    await drawer.getByText('search: the key of their sign-ins was revoked').waitFor();
    await checkAppearance(page, 'person-blocked');
    await drawer.getByRole('button', { name: 'Let in again' }).click();
    await drawer.getByRole('button', { name: 'Let in again' }).waitFor({ state: 'detached' });
    expect(await shown()).toMatchObject({ ended_at: null, blocked_teams: [] });
    await done();
  });

  it('lets people of a team sign in, and says what Claude Code needs on each computer', async () => {
    const { id } = await gateway.admin<{ id: string }>('POST', '/admin/v1/teams', { name: 'billing' });
    const { page, done } = await signedIn(gateway.url, `/teams?open=${id}`);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Edit team billing' });
    await form.getByLabel('Sign-in from clients').first().click();
    await page.getByRole('option', { name: 'Members sign in by single sign-on' }).click();
    await form.getByLabel('Sign in again after, days').fill('7');
    await form.getByLabel('USD a month each person').fill('50');
    await form.getByLabel('Settings for Claude Code').first().click();
    await page.getByRole('option', { name: 'Restrict models and tools' }).click();
    const models = form.getByLabel('Models that people may choose').first();
    for (const model of ['sonnet', 'haiku']) {
      await models.fill(model);
      await models.press('Enter');
    }
    const denied = form.getByLabel('Denied uses of tools').first();
    await denied.fill('Bash(rm -rf:*), WebFetch');
    await denied.press('Enter');
    await form.getByLabel('Nobody can switch these rules off').check();
    await checkAppearance(page, 'team-form');
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('again after 7 days, tokens of 60 minutes; $50 a month each').waitFor();
    expect(await gateway.admin('GET', `/admin/v1/teams/${id}`)).toMatchObject({
      sign_in: { days: 7, token_minutes: 60, budget_usd_per_month: '50', endpoints: 'inference' },
      claude_code: {
        availableModels: ['sonnet', 'haiku'],
        permissions: { deny: ['Bash(rm -rf:*), WebFetch'], disableBypassPermissionsMode: 'disable' },
      },
    });
    const file = async () =>
      JSON.parse(await page.getByRole('region', { name: 'managed settings' }).innerText()) as unknown;
    const fileFor = (path: string) => ({
      forceLoginMethod: 'gateway',
      forceLoginGatewayUrl: gateway.url + path,
    });
    // No provider is Anthropic's: the gateway chooses.
    expect(await file()).toEqual(fileFor(''));
    const names = ['a-model-server', 'claude-at-home'];
    for (const name of names)
      await gateway.admin('POST', '/admin/v1/providers', {
        ...{ name, url: 'http://127.0.0.1:9', secret: null },
        catalog: name === 'claude-at-home' ? 'anthropic' : null,
      });
    await gateway.admin('PATCH', `/admin/v1/teams/${id}`, { sign_in: { days: 7, providers: names } });
    await page.reload();
    await page.getByText('/p/claude-at-home').waitFor();
    expect(await file()).toEqual(fileFor('/p/claude-at-home'));
    await page.getByText('none: the address is plain HTTP').waitFor();
    await done();
  });

  it('the page on which a terminal is confirmed can be used by everybody', async () => {
    await gateway.admin('PATCH', '/admin/v1/teams/billing', { sign_in: {} });
    gateway.issuer.user = 'member';
    const started = await startDevice(gateway);
    const { page, done } = await openPage(gateway.url);
    const isFit = async (name: string) => {
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 860 });
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          await fitsWindow(page);
          expect([name, await seriousViolations(page)]).toEqual([name, []]);
          if (PICTURES)
            await page.screenshot({ path: `${PICTURES}/device-${name}-${colorScheme}-${width}.png` });
        }
      }
    };
    await page.goto(`${gateway.url}/device`);
    await isFit('code');
    await page.getByLabel('Code').fill('BBBB-BBBB');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('alert').waitFor();
    await isFit('wrong');
    await page.getByLabel('Code').fill(started.body.user_code);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('button', { name: 'Sign in this terminal' }).waitFor();
    await isFit('confirm');
    await page.getByRole('button', { name: 'Sign in this terminal' }).click();
    await page.getByText('Go back to the terminal.').waitFor();
    await isFit('done');
    const { status, access_token: token } = await poll(gateway, started.body.device_code);
    expect([status, typeof token]).toEqual([200, 'string']);
    const key = await gateway.database.find<{ id: string }>(
      `SELECT id FROM gateway_key WHERE origin = 'sign_in' AND name = 'mia@example.com'`,
    );
    // The provider is another origin, and a wrong code is 400.
    await done(/^request to /, /400/);
    const console = await signedIn(gateway.url, `/keys?key=${key.id}`);
    const drawer = console.page.getByRole('dialog', { name: 'billing / mia@example.com' });
    await drawer.getByRole('button', { name: 'Revoke' }).waitFor();
    expect(await drawer.getByRole('button', { name: 'Rotate' }).count()).toBe(0);
    await console.done();
  });
});
