import { ADMIN_TOKEN } from '../../support/gateway.js';
import { openPage, seriousViolations, settled, signIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';

export function signingIn(gateway: ConsoleGateway): void {
  it('begins at /, rejects a wrong token and keeps what was typed', async () => {
    const { page, done } = await openPage(gateway.url);
    await page.goto(gateway.url);
    await page.waitForURL(`${gateway.url}/console`);
    await page.getByLabel('Admin token').waitFor();
    await page.goto(`${gateway.url}/console/limits?state=warned`);
    await page.getByLabel('Admin token').fill('wrong-token-0123456789');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page.getByRole('alert').waitFor();
    expect(await page.getByLabel('Admin token').inputValue()).toBe('wrong-token-0123456789');
    expect(await seriousViolations(page)).toEqual([]);
    // The address that was asked for is shown after signing in.
    await signIn(page);
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor();
    expect(new URL(page.url()).searchParams.get('state')).toBe('warned');
    await done(/status of 401/);
  });

  it('ends for good by signing out: Back shows nothing, and neither does the documentation', async () => {
    const { page, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/docs`);
    await page.getByRole('link', { name: 'Sign in to the console' }).click();
    await signIn(page);
    await settled(page);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
    await page.goto(`${gateway.url}/docs`);
    await page.getByRole('heading', { name: /Postern/ }).waitFor();
    await page.locator('#operations-Keys-listKeys').waitFor();
    await page.goto(`${gateway.url}/console/`);
    await settled(page);
    const pages = page.getByRole('navigation', { name: 'Pages' });
    await pages.getByRole('link', { name: 'Limits', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    expect(await page.getByRole('navigation').count()).toBe(0);
    // The cookie that was copied before opens nothing either.
    const response = await fetch(`${gateway.url}/admin/v1/teams`, {
      headers: { cookie: `${cookie!.name}=${cookie!.value}` },
    });
    expect(response.status).toBe(401);
    expect((await page.context().request.get(`${gateway.url}/docs-json`)).status()).toBe(401);
    // The documentation was asked for once without a session.
    await done(/status of 401/);
  });

  it('goes by single sign-on too, back to the page that was asked for', async () => {
    gateway.issuer.user = 'admin';
    const { page, take, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console/usage?metric=calls`);
    await page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
    await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor();
    expect(new URL(page.url()).searchParams.get('metric')).toBe('calls');
    await page.getByText('sso:ada@example.com').waitFor();
    // Nothing but the sign-in itself left the origin.
    const elsewhere = take();
    expect(elsewhere.length).toBeGreaterThan(0);
    for (const problem of elsewhere) expect(problem).toContain(`request to ${gateway.issuer.url}/`);
    expect(await page.content()).not.toContain(ADMIN_TOKEN);
    await done();
  });

  it('by single sign-on without a group shows why not', async () => {
    gateway.issuer.user = 'stranger';
    const { page, done } = await openPage(gateway.url);
    await page.goto(`${gateway.url}/console`);
    await page.getByRole('link', { name: 'Sign in with single sign-on' }).click();
    await page.getByText('None of your groups').waitFor();
    await page.getByRole('link', { name: 'Back to the console' }).click();
    await page.getByLabel('Admin token').waitFor();
    await done(/request to http:\/\/127.0.0.1/, /status of 403/);
  });
}
