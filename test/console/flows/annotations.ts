import { readFile } from 'node:fs/promises';
import { insertRow } from '../../request-log/rows.js';
import { signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

/** Markup, and what a spreadsheet would run. */
const HOSTILE = '=1+1<img src=x onerror=alert(1)>';

/** Who is responsible for a team or a key, and who is charged. */
export function annotationFlows(gateway: ConsoleGateway): void {
  it('are set in the form of a team and of a key, which shows those of its team', async () => {
    const { page, done } = await signedIn(gateway.url, '/teams?new=1');
    const form = page.getByRole('dialog', { name: 'Create a team' });
    await form.getByRole('textbox', { name: 'Name' }).fill('annotated');
    await form.getByLabel('Owner').fill('ann@example.com');
    await form.getByLabel('Contact').fill('#search-oncall');
    await form.getByLabel('Cost center').fill(HOSTILE);
    await form.getByLabel('Note').fill(`Two\nlines ${HOSTILE}`);
    await checkAppearance(page);
    await form.getByRole('button', { name: 'Create team' }).click();
    const drawer = page.getByRole('dialog', { name: 'annotated' });
    await drawer.getByText('#search-oncall').waitFor();
    expect(await drawer.innerText()).toContain(`Two\nlines ${HOSTILE}`);
    expect(await gateway.admin('GET', '/admin/v1/teams/annotated')).toMatchObject({
      owner: 'ann@example.com',
      contact: '#search-oncall',
      cost_center: HOSTILE,
      note: `Two\nlines ${HOSTILE}`,
    });

    const { id } = await gateway.admin<{ id: string }>('POST', '/admin/v1/keys', {
      team: 'annotated',
      name: 'batch',
    });
    await page.goto(`${gateway.url}/console/keys?key=${id}`);
    const ofKey = page.getByRole('dialog', { name: 'annotated / batch' });
    await ofKey.getByText('#search-oncall (of the team)').waitFor();
    await ofKey.getByText('ann@example.com (of the team)').waitFor();
    await ofKey.getByRole('button', { name: 'Edit', exact: true }).click();
    const edit = page.getByRole('dialog', { name: 'Edit key batch' });
    expect(await edit.getByLabel('Contact').getAttribute('placeholder')).toBe('#search-oncall');
    await edit.getByLabel('Contact').fill('bob@example.com');
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    await ofKey.getByText('bob@example.com').waitFor();
    // Only what was changed was sent.
    expect(await gateway.admin('GET', `/admin/v1/audit?subject_id=${id}&action=changed`)).toMatchObject({
      data: [{ before: { contact: null }, after: { contact: 'bob@example.com' } }],
    });
    await checkAppearance(page);
    await done();
  });

  it('are in the lists, and a list of keys has those of one cost center', async () => {
    await gateway.admin('POST', '/admin/v1/teams', { name: 'without' });
    await gateway.admin('POST', '/admin/v1/keys', { team: 'without', name: 'uncharged' });
    const { page, done } = await signedIn(gateway.url, '/keys');
    await page.getByRole('row').filter({ hasText: 'uncharged' }).waitFor();
    await page.getByLabel('Cost center').fill(HOSTILE);
    await page.keyboard.press('Enter');
    await page.getByRole('row').filter({ hasText: 'uncharged' }).waitFor({ state: 'detached' });
    await page.getByRole('row').filter({ hasText: 'batch' }).getByText('bob@example.com').waitFor();
    await page.getByRole('link', { name: 'Teams', exact: true }).click();
    const row = page.getByRole('row').filter({ hasText: 'annotated' });
    await row.getByText('#search-oncall').waitFor();
    expect(await row.innerText()).toContain(HOSTILE);
    expect(await row.innerText()).toContain('ann@example.com');
    await page.getByLabel('Owner').fill('somebody else');
    await page.keyboard.press('Enter');
    await page.getByText('No team matches').waitFor();
    await page.getByLabel('Owner').fill('ann@example.com');
    await page.keyboard.press('Enter');
    await row.waitFor();
    await checkAppearance(page);
    await done();
  });

  it('sum the usage, also in a file that a spreadsheet opens', async () => {
    const { team_id, key_id } = await gateway.database.find<{ team_id: string; key_id: string }>(
      `SELECT team_id, id AS key_id FROM gateway_key WHERE name = 'batch'`,
    );
    await insertRow(gateway.database, new Date(), { team_id, key_id, cost_usd: '2.5' });
    const { page, done } = await signedIn(gateway.url, '/usage?range=1h&by=cost_center');
    const row = page.getByRole('row').filter({ hasText: HOSTILE });
    await row.getByText('$2.50').first().waitFor();
    await checkAppearance(page);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV', exact: true }).click(),
    ]);
    const [head, line] = (await readFile(await download.path())).toString().split('\n');
    expect(head).toContain(',cost_center,');
    expect(line).toContain(`,'${HOSTILE},`);
    // Which keys these are.
    await row.getByRole('link').click();
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'batch' }).waitFor();
    await page.goto(`${gateway.url}/console/usage?range=1h&by=owner`);
    await page.getByRole('row').filter({ hasText: 'ann@example.com' }).getByRole('link').click();
    await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'batch' }).waitFor();
    await done();
  });
}
