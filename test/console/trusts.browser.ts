import { describeInBrowser, fitsWindow, settled, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';
import { picture } from './picture.js';
import { exchange } from '../identity/exchanges.js';
import { FakeIssuer } from '../identity/fake-issuer.js';

/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;
const JOB = { repository_id: '7', event_name: 'push', aud: 'gateway' };

interface Shown {
  claims: object;
  enabled: boolean;
  live_tokens: number;
}

describeInBrowser('trusts in the console', () => {
  const gateway = {} as ConsoleGateway;
  let issuer: FakeIssuer;
  let keyId: string;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
    issuer = await FakeIssuer.start();
    await gateway.admin('POST', '/admin/v1/teams', { name: 'search' });
    const key = { team: 'search', name: 'ci', secret: false };
    keyId = (await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', key)).id;
  });
  afterAll(async () => {
    await gateway.stop();
    await issuer.stop();
  });
  const shown = () => gateway.admin<Shown>('GET', '/admin/v1/trusts/api-ci');

  it('creates one from a preset: the form says what is missing and keeps what was typed', async () => {
    const { page, done } = await signedIn(gateway.url, '/trusts');
    await page.getByText('No identity token is accepted').waitFor();
    await page.getByRole('button', { name: 'Create trust' }).click();
    const form = page.getByRole('dialog', { name: 'Create a trust' });
    await form.getByRole('textbox', { name: 'Name' }).fill('api-ci');
    await form.getByRole('combobox', { name: 'Key' }).fill('search/ci');
    await page.getByRole('option', { name: 'search/ci' }).click();
    await form.getByLabel('Issuer', { exact: true }).fill(issuer.url);
    await form.getByLabel('Audience').fill('gateway');
    const repository = form.getByRole('group', { name: 'Condition 1' });
    await repository.getByLabel('Accepted values').first().fill('7');
    await checkAppearance(page, 'trust-form');
    // No branch is named.
    await form.getByRole('button', { name: 'Create trust' }).click();
    await form.getByText('must have at least one accepted value', { exact: false }).first().waitFor();
    expect(await form.getByLabel('Audience').inputValue()).toBe('gateway');
    await form.getByRole('button', { name: 'Remove condition 2' }).click();
    await form.getByRole('button', { name: 'Create trust' }).click();
    await form.getByText('to accept every branch', { exact: false }).first().waitFor();
    await form.getByLabel('Every branch').check();
    await form.getByRole('button', { name: 'Create trust' }).click();
    await page
      .getByRole('dialog', { name: 'api-ci' })
      .getByText('None that its issuer has signed.')
      .waitFor();
    expect(await shown()).toMatchObject({ claims: { repository_id: ['7'] }, enabled: true, live_tokens: 0 });
    await done(/400/);
  });

  it('shows its tokens and what it rejected, tests a token, and ends all of them', async () => {
    const issued = await exchange(gateway, 'api-ci', await issuer.sign({ ...JOB, sub: 'repo:acme/api' }));
    expect(issued.status).toBe(200);
    await exchange(gateway, 'api-ci', await issuer.sign({ ...JOB, repository_id: '8' }));
    const { page, done } = await signedIn(gateway.url, '/keys');
    await page.getByRole('button', { name: 'Whose key is this?' }).click();
    const found = page.getByRole('dialog', { name: 'Whose key is this?' });
    await found.getByLabel('Secret', { exact: true }).fill(issued.token!);
    await found.getByRole('button', { name: 'Find', exact: true }).click();
    await found.getByText('token of the trust api-ci').waitFor();
    await found.getByText('disable its trust on the page Trusts', { exact: false }).waitFor();
    await checkAppearance(page, 'found-token');
    await page.goto(`${gateway.url}/console/trusts`);
    await page.getByRole('row', { name: 'api-ci' }).waitFor();
    await picture(page, 'trusts');
    await page.getByRole('row', { name: 'api-ci' }).getByText('search/ci').click();
    const drawer = page.getByRole('dialog', { name: 'api-ci' });
    await drawer.getByText('1 of 1,000').waitFor();
    await drawer.getByText('repository_id does not have an accepted value', { exact: false }).waitFor();

    await drawer.getByRole('button', { name: 'Test a token' }).click();
    const test = page.getByRole('dialog', { name: 'Test a token with api-ci' });
    await test.getByLabel('Identity token').fill(await issuer.sign({ ...JOB, event_name: 'pull_request' }));
    await test.getByRole('button', { name: 'Test', exact: true }).click();
    await test.getByText('not met: the claim event_name', { exact: false }).waitFor();
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 860 });
      await settled(page);
      await fitsWindow(page);
      if (PICTURES) await page.screenshot({ path: `${PICTURES}/trust-test-${width}.png`, fullPage: true });
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    await test.getByLabel('Identity token').fill(await issuer.sign(JOB));
    await test.getByRole('button', { name: 'Test', exact: true }).click();
    await test.getByText('It would be accepted').waitFor();
    await test.getByText('claims.repository_id').waitFor();
    await test.getByRole('button', { name: 'Cancel' }).click();

    await drawer.getByRole('link', { name: 'search/ci' }).click();
    const key = page.getByRole('dialog', { name: 'search / ci' });
    await key.getByText('repo:acme/api').waitFor();
    // It has no secret that could be rotated.
    expect(await key.getByRole('button', { name: 'Rotate' }).count()).toBe(0);
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 860 });
      await settled(page);
      await fitsWindow(page);
      if (PICTURES) await page.screenshot({ path: `${PICTURES}/trust-key-${width}.png`, fullPage: true });
    }
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.goBack();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await drawer.getByRole('button', { name: 'Disable' }).click();
    await drawer.getByText('None of its tokens works, and none is issued.').waitFor();
    await drawer.getByText('0 of 1,000').waitFor();
    expect(await shown()).toMatchObject({ enabled: false, live_tokens: 0 });

    await drawer.getByRole('button', { name: 'Remove' }).click();
    const confirm = page.getByRole('dialog', { name: 'Remove trust api-ci' });
    await confirm.getByRole('textbox').fill('api-ci');
    await confirm.getByRole('button', { name: 'Remove trust' }).click();
    await page.getByText('No identity token is accepted').waitFor();
    expect(await gateway.admin('GET', '/admin/v1/trusts')).toMatchObject({ data: [] });
    // What was removed is not asked for again, which would be answered with 404. Back shows no drawer for it.
    const removal = asked.findIndex((line) => line.startsWith('DELETE /admin/v1/trusts/'));
    const path = asked[removal]!.slice('DELETE '.length);
    await page.goBack();
    await settled(page);
    expect(asked.slice(removal + 1).filter((line) => line.includes(path))).toEqual([]);
    await done();
  });

  it('tells a member which trusts issue tokens of a key, and when they last did', async () => {
    await gateway.admin('POST', '/admin/v1/trusts', {
      ...{ name: 'jobs', key: 'search/ci', issuer: issuer.url, audience: 'gateway' },
      claims: { sub: ['job'] },
    });
    expect((await exchange(gateway, 'jobs', await issuer.sign())).status).toBe(200);
    const member = { name: 'member', role: 'team', teams: ['search'] };
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', member);
    const { page, done } = await signedIn(gateway.url, `/keys?key=${keyId}`, { token });
    const drawer = page.getByRole('dialog', { name: 'search / ci' });
    await drawer.getByText('Trust jobs: last used', { exact: false }).waitFor();
    expect(await drawer.getByText('On the page Trusts').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Trusts' }).count()).toBe(0);
    await done();
  });
});
