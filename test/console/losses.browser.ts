import { describeInBrowser, openAfresh, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';

const idOf = (number: number) => `01890a5d-ac96-774b-bcce-b3020900000${number}`;

const entry = (id: string, action: string, subjectType: string, subjectName: string) => ({
  id: `01890a5d-ac96-774b-bcce-b30209${id}`,
  at: '2026-11-22T06:27:13.629Z',
  actor: 'sso:jane@example.com',
  action,
  subjectType,
  subjectId: '01890a5d-ac96-774b-bcce-b302099a8057',
  subjectName,
});

describeInBrowser('what Postgres has lost, in the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
  });
  afterAll(() => gateway.stop());

  /** @param number the list begins with the highest; 2: on the server that runs, as only such a one can be put back */
  const lose = (number: number, state: string, entries: object[] = []) =>
    gateway.database.query(
      `INSERT INTO database_regression (id, server, noticed_at, lost_from, gap_seconds, state, rows_put_back, ends_put_back, lost_entries)
       VALUES ($1, CASE WHEN $2::int = 2 THEN pg_postmaster_start_time() ELSE now() + $2::int * interval '1 s' END,
         now(), now(), 12, $3, 4187, 3, $4)`,
      [idOf(number), number, state, JSON.stringify(entries)],
    );
  const stateOf = async (number: number) => {
    const [row] = await gateway.database.query<{ state: string }>(
      'SELECT state FROM database_regression WHERE id = $1',
      [idOf(number)],
    );
    return row!.state;
  };

  it('needs attention, says what to repeat, and lets an administrator decide', async () => {
    await lose(1, 'put_back', [
      entry('9a8001', 'created', 'team', 'a-team-with-a-long-name-that-no-line-of-a-small-screen-holds'),
      entry('9a8002', 'rotated', 'key', 'search/ci'),
    ]);
    await lose(2, 'waiting');
    await lose(3, 'waiting');
    const { page, done } = await signedIn(gateway.url, '/');
    const attention = page.getByRole('region', { name: 'Needs attention' });
    const line = attention.getByRole('listitem').filter({ hasText: 'Postgres has lost' });
    await line.getByText('3 times Postgres has lost', { exact: false }).waitFor();
    await line.getByText('2 changes to repeat', { exact: false }).waitFor();
    await line.getByRole('link', { name: 'See what was lost' }).click();

    const section = page.getByRole('region', { name: 'Lost by Postgres' });
    await section.getByText('4,187').first().waitFor();
    // Rotations first.
    const changes = await section.getByRole('listitem').allInnerTexts();
    expect(changes.map((text) => text.split(' by ')[0])).toEqual([
      'key search/ci rotated',
      'team a-team-with-a-long-name-that-no-line-of-a-small-screen-holds created',
    ]);
    await checkAppearance(page, 'losses');

    await section.getByRole('button', { name: 'Dismiss' }).first().click();
    await page
      .getByRole('dialog', { name: 'Put back nothing' })
      .getByRole('button', { name: 'Dismiss' })
      .click();
    await section.getByText('dismissed', { exact: true }).waitFor();
    expect(await stateOf(3)).toBe('dismissed');
    await section.getByRole('button', { name: 'Put back', exact: true }).click();
    const asked = page.getByRole('dialog', { name: 'Put back what was lost' });
    await asked.getByRole('button', { name: 'Put back' }).click();
    await section.getByRole('button', { name: 'Put back', exact: true }).waitFor({ state: 'detached' });
    expect(await stateOf(2)).toBe('put_back');
    await done();
  });

  it('is shown to a viewer without buttons, and to nobody where nothing was lost', async () => {
    await gateway.database.query(`UPDATE database_regression SET state = 'waiting'`);
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      name: 'looks',
      role: 'viewer',
    });
    const { page, done } = await signedIn(gateway.url, '/system', { token });
    const section = page.getByRole('region', { name: 'Lost by Postgres' });
    await section.getByText('waiting for you').first().waitFor();
    expect(await section.getByRole('button').count()).toBe(0);
    await gateway.database.query('DELETE FROM database_regression');
    await openAfresh(page, 'system');
    await page.getByRole('heading', { level: 1, name: 'System' }).waitFor();
    await section.waitFor({ state: 'detached' });
    await done();
  });
});
