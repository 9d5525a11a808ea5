import { SECRETS, settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

/** Tokens and sessions. */
export function accessFlows(gateway: ConsoleGateway): void {
  const status = async (token: string) =>
    (await fetch(`${gateway.url}/admin/v1/teams`, { headers: { authorization: `Bearer ${token}` } })).status;

  it('creates a token, shows it once, and revokes it after its name was typed', async () => {
    await gateway.admin('POST', '/admin/v1/teams', { name: 'of the token' });
    const { page, done } = await signedIn(gateway.url, '/access');
    await page.getByText('There is no token beside ADMIN_TOKEN').waitFor();
    await page.getByRole('button', { name: 'Create token' }).first().click();
    const form = page.getByRole('dialog', { name: 'Create a token' });
    await form.getByRole('textbox', { name: 'Name' }).fill('jane');
    await form.getByLabel('Role').first().click();
    await page.getByRole('option', { name: 'Member of teams' }).click();
    await form.getByText('Sees its teams, and has keys of its own there if the team allows it.').waitFor();
    // Without a team there is nothing that it could see.
    expect(await form.getByRole('button', { name: 'Create token' }).isDisabled()).toBe(true);
    await form.getByLabel('Teams').first().click();
    await page.getByRole('option', { name: 'of the token' }).click();
    await page.keyboard.press('Escape');
    await form.getByRole('button', { name: 'Create token' }).click();
    const shown = page.getByRole('dialog', { name: 'Token jane' });
    const token = (await shown.getByRole('region', { name: 'token' }).innerText()).trim();
    SECRETS.add(token);
    await checkAppearance(page);
    expect(await status(token)).toBe(200);
    // Not by accident: Escape keeps it, the button does not.
    await page.keyboard.press('Escape');
    await shown.getByRole('button', { name: 'I have copied it' }).click();
    await shown.waitFor({ state: 'detached' });
    const row = page.getByRole('row').filter({ hasText: 'jane' });
    await row.getByText(token.slice(0, 12)).waitFor();
    expect(await row.innerText()).toContain('of the token');
    expect(await row.innerText()).toContain('Member of teams');

    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByLabel('Type jane to confirm').fill('jane');
    await page.getByRole('button', { name: 'Revoke token' }).click();
    await row.waitFor({ state: 'detached' });
    expect(await status(token)).toBe(401);
    await done();
  });

  it('says what is wrong beside the field, and keeps what was typed', async () => {
    await gateway.admin('POST', '/admin/v1/tokens', { name: 'taken', role: 'metrics' });
    const { page, done } = await signedIn(gateway.url, '/access?new=1');
    const form = page.getByRole('dialog', { name: 'Create a token' });
    await form.getByRole('textbox', { name: 'Name' }).fill('taken');
    await form.getByRole('button', { name: 'Create token' }).click();
    await form.getByText('a token with this name already exists; choose another name').first().waitFor();
    expect(await form.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('taken');
    await done(/409/);
  });

  it('shows who is signed in, and ends one session, or all of a user', async () => {
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      name: 'to be ended',
      role: 'viewer',
    });
    SECRETS.add(token);
    for (let i = 0; i < 3; i++)
      await fetch(`${gateway.url}/admin/v1/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token }),
      });
    const { page, done } = await signedIn(gateway.url, '/access');
    const table = page.getByRole('table', { name: 'Sessions' });
    await table.getByText('this browser').first().waitFor();
    const left = async () =>
      (await gateway.database.query(`SELECT FROM admin_session WHERE actor = 'token:to be ended'`)).length;
    const rows = table.getByRole('row').filter({ hasText: 'token:to be ended' });
    await rows.nth(2).waitFor();
    await checkAppearance(page);
    await rows.first().getByRole('button', { name: 'End the session of token:to be ended' }).click();
    await rows.nth(2).waitFor({ state: 'detached' });
    expect(await left()).toBe(2);
    await rows.first().getByRole('button', { name: 'End all sessions of token:to be ended' }).click();
    await rows.first().waitFor({ state: 'detached' });
    expect(await left()).toBe(0);
    await checkAppearance(page);
    await done();
  });

  it('lets a viewer read, and change nothing', async () => {
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      name: 'reads',
      role: 'viewer',
    });
    SECRETS.add(token);
    const { page, done } = await signedIn(gateway.url, '/access', { token });
    await page.getByRole('row').filter({ hasText: 'taken' }).waitFor();
    await settled(page);
    expect(await page.getByRole('button', { name: /^(Create|Revoke)/ }).count()).toBe(0);
    await page.goto(`${gateway.url}/console/access?new=1`);
    await settled(page);
    expect(await page.getByRole('dialog').count()).toBe(0);
    await done();
  });
}
