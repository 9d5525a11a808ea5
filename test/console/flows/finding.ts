import type { Page } from 'playwright-core';
import { ADMIN_TOKEN } from '../../support/gateway.js';
import { SECRETS, seriousViolations, settled, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';

/** Finding things: the search of every page, and the filters and orders of lists. */
export function finding(gateway: ConsoleGateway): void {
  const box = (page: Page) => page.getByRole('combobox', { name: 'Search', exact: true });
  const options = (page: Page) => page.getByRole('listbox', { name: 'Found' }).getByRole('option');
  const isFocused = (page: Page) =>
    page.evaluate<boolean>('document.activeElement?.getAttribute("aria-label") === "Search"');

  it('is led to by / on every page, goes to a key by keyboard alone, and Escape leads back', async () => {
    const { page, done } = await signedIn(gateway.url, '/usage?range=7d');
    await settled(page);
    await page.getByRole('button', { name: 'Add filter' }).focus();
    await page.keyboard.press('/');
    expect(await isFocused(page)).toBe(true);
    await page.keyboard.type('SEARCH/note');
    await options(page).filter({ hasText: 'search / notebook' }).first().waitFor();
    expect(await options(page).first().textContent()).toBe('search / notebook');
    expect(await seriousViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    expect(await box(page).inputValue()).toBe('');
    await until(() => page.evaluate<boolean>('document.activeElement?.textContent === "Add filter"'));

    await page.keyboard.press('/');
    // Enter before there is anything to choose goes to the first that is found.
    await page.keyboard.type('search/note');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname === '/console/keys' && url.searchParams.has('key'));
    // The time range goes along, and what was typed does not.
    expect(new URL(page.url()).searchParams.get('range')).toBe('7d');
    expect(page.url()).not.toContain('note');
    await page.getByRole('dialog').getByText('search / notebook').waitFor();
    // In a dialog, and in a field, / is a character.
    await page.keyboard.press('/');
    expect(await isFocused(page)).toBe(false);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByLabel('Name or start of the secret').focus();
    await page.keyboard.press('/');
    expect(await isFocused(page)).toBe(false);
    await done();
  });

  it('finds whose key a whole key is, of which nothing stays in the page', async () => {
    const { key, id } = await gateway.admin<{ key: string; id: string }>('POST', '/admin/v1/keys', {
      team: 'checkout',
      name: 'leaked',
    });
    SECRETS.add(key);
    const { page, done } = await signedIn(gateway.url, '/');
    await settled(page);
    const asked: string[] = [];
    page.on('request', (request) => {
      asked.push(`${request.method()} ${request.url()}`);
    });
    await box(page).fill(`authorization: Bearer ${key}`);
    expect(await box(page).inputValue()).toBe(key.slice(0, 12));
    await options(page).getByText('leaked').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('key') === id);
    expect(asked.filter((line) => line.includes(key))).toEqual([]);
    expect(asked.filter((line) => line.includes('/keys/find'))).toHaveLength(1);
    await box(page).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const stranger = `ptn_${'x'.repeat(38)}`;
    SECRETS.add(stranger);
    await box(page).fill(stranger);
    await page.getByText('No key of this gateway has or had this secret.').waitFor();
    // Chromium reports the 400 or 404.
    await done(/Failed to load resource.*40[04]/);
  });

  it('finds a call by its ID and by that of the provider, and an end user', async () => {
    const call = await gateway.database.find<{ id: string; provider: string; user: string }>(
      `SELECT id, provider_request_id AS provider, end_user AS "user" FROM request_log
       WHERE provider_request_id IS NOT NULL AND end_user IS NOT NULL AND started_at < now() - interval '3 days'
       ORDER BY started_at DESC LIMIT 1`,
    );
    const { page, done } = await signedIn(gateway.url, '/');
    await settled(page);
    for (const text of [call.id, call.provider]) {
      await box(page).fill(text);
      await page.keyboard.press('Enter');
      await page.waitForURL((url) => url.searchParams.get('id') === call.id);
      await page.getByRole('dialog').getByText(call.id).first().waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await box(page).fill(call.user);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('end_user') === call.user);
    await page.getByRole('button', { name: `Remove filter End user: ${call.user}` }).waitFor();
    await done();
  });

  it('finds for a member only what their teams have', async () => {
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      name: 'finder',
      role: 'team',
      teams: ['billing'],
    });
    SECRETS.add(token);
    for (const [as, count] of [
      [token, 1],
      [ADMIN_TOKEN, 5],
    ] as const) {
      const { page, done } = await signedIn(gateway.url, '/', { token: as });
      await settled(page);
      await box(page).fill('notebook');
      await options(page).getByText('notebook').first().waitFor();
      const keys = await options(page).filter({ hasText: ' / ' }).allTextContents();
      expect(keys).toHaveLength(count);
      if (count === 1) expect(keys).toEqual(['billing / notebook']);
      await done();
    }
  });
}
