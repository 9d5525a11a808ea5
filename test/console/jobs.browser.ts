import { v7 as uuidv7 } from 'uuid';
import { eventually } from '../support/eventually.js';
import { describeInBrowser, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';

const ADD = `
  INSERT INTO provider_job (id, started_at, provider, kind, digest, team_id, key_id, state, problem, next_check_at)
  SELECT $1, now(), 'openai', $2, $3, k.team_id, k.id, $4, $5, $6 FROM gateway_key k LIMIT 1`;

describeInBrowser('the page of jobs', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
  });
  afterAll(() => gateway.stop());

  it('shows jobs, those in a state, and has one checked', async () => {
    const { page, done } = await signedIn(gateway.url, '/jobs');
    await page.getByText('There are no jobs').waitFor();
    const [open, lost] = [uuidv7(), uuidv7()];
    await gateway.admin('POST', '/admin/v1/teams', { name: 'search' });
    await gateway.admin('POST', '/admin/v1/keys', { team: 'search', name: 'ci' });
    const later = new Date(Date.now() + 3_600_000);
    await gateway.database.query(ADD, [open, 'batch', Buffer.alloc(32, 1), 'open', null, later]);
    await gateway.database.query(ADD, [lost, 'video', Buffer.alloc(32, 2), 'unknown', 'no_usage', null]);
    await page.reload();
    await page.getByRole('link', { name: 'Batch' }).waitFor();
    await page.getByText('The job ended without usage').waitFor();
    await checkAppearance(page);
    await page.getByText('Unknown', { exact: true }).first().click();
    await page.getByRole('link', { name: 'Batch' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Video' }).waitFor();
    expect(new URL(page.url()).searchParams.get('jobs')).toBe('unknown');
    await page.getByRole('button', { name: `Check now: ${lost}` }).click();
    await eventually(async () => {
      const [row] = await gateway.database.query<{ problem: string }>(
        'SELECT problem FROM provider_job WHERE id = $1 AND checked_at IS NOT NULL',
        [lost],
      );
      return row?.problem === 'provider_unavailable';
    });
    await done();
  });
});
