import { readFile } from 'node:fs/promises';
import { insertRow } from '../../request-log/rows.js';
import { goTo, settled, signedIn } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';

/** Of a team in the seed. */
export const HOSTILE = '<img src=x onerror=alert(1)>';
const NAMES = [
  HOSTILE,
  '"><script>alert(2)</script>',
  "javascript:alert(3)//'",
  '{{constructor.constructor("alert(4)")()}}',
  '\u202egnp.exe\u0007',
];

const TEXTS = [
  'provider',
  'path',
  'model',
  'error_code',
  'provider_request_id',
  'idempotency_key',
  'user_agent',
  'end_user',
  'session_id',
];

/** Whatever text comes from the wire or from another administrator is shown as text. */
export function hostileNames(gateway: ConsoleGateway): void {
  it.each(NAMES)('%j is text on every page', async (name) => {
    const { database } = gateway;
    const key = await database.find<{ key_id: string; team_id: string }>(
      'SELECT id AS key_id, team_id FROM gateway_key WHERE revoked_at IS NULL LIMIT 1',
    );
    const id = await insertRow(database, new Date(), {
      ...key,
      ...Object.fromEntries(TEXTS.map((column) => [column, name])),
      tags: { [name]: name },
      recorded_at: new Date(),
    });
    const columns = 'result,provider,model,path,end_user,session,user_agent';
    const { page, done } = await signedIn(gateway.url, `/requests?range=1h&id=${id}&columns=${columns}`);
    await page.getByRole('dialog').getByRole('heading', { name: 'Timeline' }).waitFor();
    expect(await page.getByRole('dialog').innerText()).toContain(name);
    const made = () =>
      page.evaluate<number>(
        `document.querySelectorAll('img[src="x"], main script, [role="dialog"] script, a[href^="javascript:" i]').length`,
      );
    expect(await made()).toBe(0);
    await goTo(page, 'usage?range=1h&by=end_user&then=model');
    await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor();
    await settled(page);
    expect(await made()).toBe(0);
    // No dialog opened, and nothing was requested for it: done() says so.
    await done();
  });
  it('is no formula in a file of the usage, also not in full width', async () => {
    const names = ['=1', '+1', '-1', '@1', '\uff1d1', '\uff0b1', '\uff0d1', '\uff201'];
    for (const model of names) await insertRow(gateway.database, new Date(), { model });
    const { page, done } = await signedIn(gateway.url, '/usage?range=1h&by=model');
    await page.getByText('\uff201').first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'CSV', exact: true }).click(),
    ]);
    const text = (await readFile(await download.path())).toString();
    expect(names.filter((name) => text.includes(`,'${name},`))).toEqual(names);
    await done();
  });
}
