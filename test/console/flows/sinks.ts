import { unusedPort } from '../../support/unused-port.js';
import { SECRETS, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

/** Systems that get the rows of the log. */
export function sinkFlows(gateway: ConsoleGateway): void {
  it('adds a sink, shows that it fails and why, pauses, changes and removes it', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`;
    SECRETS.add('user:never-shown');
    const { page, done } = await signedIn(gateway.url, '/sinks');
    await page.getByText('The request log is in Postgres only').waitFor();
    await page.getByRole('button', { name: 'Add sink' }).first().click();
    const form = page.getByRole('dialog', { name: 'Add a sink' });
    await form.getByRole('textbox', { name: 'Name' }).fill('warehouse');
    await form.getByLabel('URL').fill(url);
    await form.getByRole('button', { name: 'Add sink' }).click();
    // What is missing is said beside its field.
    await form
      .getByText(/must be/i)
      .first()
      .waitFor();
    await form.getByLabel('Target').fill('request_log');
    await form.getByLabel('Secret').first().fill('user:never-shown');
    await form.getByLabel('Starts with').first().click();
    await page.getByRole('option', { name: 'Rows from now on' }).click();
    await form.getByRole('button', { name: 'Add sink' }).click();

    const drawer = page.getByRole('dialog', { name: 'warehouse' });
    await drawer.getByText('It takes no rows').waitFor();
    await drawer.getByText(/Connection refused: .*Start the server/).waitFor();
    await drawer.getByText('failing', { exact: true }).waitFor();
    await checkAppearance(page);
    await drawer.getByRole('button', { name: 'Pause' }).click();
    await drawer.getByText('paused', { exact: true }).waitFor();
    await drawer.getByRole('button', { name: 'Resume' }).waitFor();
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit sink warehouse' });
    await edit.getByLabel('Target').fill('other_log');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', '/admin/v1/sinks/warehouse')).toMatchObject({
      target: 'other_log',
      enabled: false,
      url,
    });
    await page.keyboard.press('Escape');
    await page.getByRole('row').filter({ hasText: 'warehouse' }).getByText('ClickHouse').waitFor();
    await checkAppearance(page);
    await page.getByRole('row').filter({ hasText: 'warehouse' }).click();
    await drawer.getByRole('button', { name: 'Remove' }).click();
    await page.getByLabel('Type warehouse to confirm').fill('warehouse');
    await page.getByRole('button', { name: 'Remove sink' }).click();
    await page.getByText('The request log is in Postgres only').waitFor();
    await done(/400/);
  });
}
