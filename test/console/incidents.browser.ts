import {
  seriousViolations,
  describeInBrowser,
  fitsWindow,
  goTo,
  inColours,
  settled,
  signedIn,
  until,
} from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { insertRow } from '../request-log/rows.js';

/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;

interface Key {
  id: string;
  team_id: string;
}

describeInBrowser('an incident in the console', () => {
  const gateway = {} as ConsoleGateway;
  let key: Key;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
    await gateway.admin('POST', '/admin/v1/teams', { name: 'search' });
    key = await gateway.admin<Key>('POST', '/admin/v1/keys', { team: 'search', name: 'ci' });
  });
  afterAll(() => gateway.stop());

  const row = (columns: Record<string, unknown>, at = new Date()) =>
    insertRow(gateway.database, at, { key_id: key.id, team_id: key.team_id, ...columns });

  it('begins with what to do first while there is no provider', async () => {
    const { page, done } = await signedIn(gateway.url, '/');
    const section = page.getByRole('region', { name: 'Needs attention' });
    await section.waitFor();
    const lines = await section.getByRole('listitem').allInnerTexts();
    expect(lines.map((text) => text.replace(/\s+/g, ' '))).toEqual([
      'No provider Add a provider first, or enable one: until then calls get 503. Add a provider',
    ]);
    expect(await page.getByText('All well').count()).toBe(0);
    await settled(page);
    expect(await seriousViolations(page)).toEqual([]);
    await section.getByRole('link', { name: 'Add a provider' }).click();
    await page.getByRole('heading', { level: 1, name: 'Providers and routes' }).waitFor();
    await done();
  });

  it('is not there if all is well: one line says so', async () => {
    const first = { name: 'first', url: gateway.provider.url, secret: null };
    await gateway.admin('POST', '/admin/v1/providers', first);
    const { page, done } = await signedIn(gateway.url, '/');
    await settled(page);
    await page.getByText('All well').waitFor();
    expect(await page.getByRole('heading', { name: 'Needs attention' }).count()).toBe(0);
    await done();
  });

  it('is the first thing on the overview, with links to what it is about', async () => {
    await gateway.admin('POST', '/admin/v1/providers', {
      name: 'groq',
      url: 'http://127.0.0.1:9',
      secret: null,
    });
    const failing = ['groq', 25, 25, 'insufficient_quota'];
    await gateway.database.query(
      'INSERT INTO failing_provider (provider, calls, failures, reason, last_call_at) VALUES ($1, $2, $3, $4, now())',
      failing,
    );
    for (const [name, days] of [
      ['soon', 2],
      ['later', 6],
    ] as const)
      await gateway.admin('POST', '/admin/v1/keys', {
        team: 'search',
        name,
        expires_at: new Date(Date.now() + days * 86_400_000).toISOString(),
      });
    await gateway.database.query(
      `INSERT INTO unpriced_model (provider, model, day) VALUES ('groq', 'llama-4', (now() AT TIME ZONE 'UTC')::date)`,
    );
    const { page, done } = await signedIn(gateway.url, '/');
    const section = page.getByRole('region', { name: 'Needs attention' });
    await section.waitFor();
    await settled(page);
    const texts = (await section.getByRole('listitem').allInnerTexts()).map((text) =>
      text.replace(/\s+/g, ' '),
    );
    expect(texts).toEqual([
      'Failing 1 provider fails most of its calls: groq (25 of 25 calls failed in the last minutes, mostly insufficient_quota) Requests to groq',
      'Expiring 2 keys expire within 7 days: search/soon, search/later Expiring keys',
      'No price 1 model was called that has no price: groq/llama-4 See prices',
    ]);
    // Before the figures.
    const before = await page.evaluate<boolean>(
      `!!(document.querySelector('[aria-label="Cost"]').compareDocumentPosition(document.querySelector('main ul')) & 2)`,
    );
    expect(before).toBe(true);
    for (const scheme of ['light', 'dark'] as const) {
      await inColours(page, scheme);
      expect(await seriousViolations(page)).toEqual([]);
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 860 });
        await fitsWindow(page);
        if (PICTURES) await page.screenshot({ path: `${PICTURES}/attention-${width}-${scheme}.png` });
      }
      await page.setViewportSize({ width: 1280, height: 860 });
    }
    await section.getByRole('link', { name: 'Expiring keys' }).click();
    await page.getByText('Keys that expire before').waitFor();
    const keys = page.getByRole('table', { name: 'Gateway keys' }).locator('tbody tr');
    await until(async () => (await keys.count()) === 2);
    await page.getByRole('button', { name: 'Show all' }).click();
    await until(async () => (await keys.count()) > 2);
    await done();
  });

  it('calls a provider failing by the rule of the alert alone, in both tables', async () => {
    for (const name of ['few', 'errors', 'well'])
      await gateway.admin('POST', '/admin/v1/providers', { name, url: 'http://127.0.0.1:9', secret: null });
    for (const [provider, failed, succeeded] of [
      ['few', 1, 0],
      ['errors', 2, 3],
      ['well', 1, 9],
    ] as const) {
      for (let i = 0; i < failed; i++) await row({ provider, status: 500 });
      for (let i = 0; i < succeeded; i++) await row({ provider });
    }
    const expected = {
      groq: 'Failing',
      few: 'Few calls',
      errors: 'Errors',
      well: 'Healthy',
      first: 'No calls',
    };
    const { page, done } = await signedIn(gateway.url, '/');
    for (const [path, table, column] of [
      ['', 'Providers in the last hour', 'State'],
      ['providers', 'Providers', 'Last hour'],
    ] as const) {
      await goTo(page, path);
      const rows = page.getByRole('table', { name: table, exact: true }).locator('tbody tr');
      for (const [name, state] of Object.entries(expected))
        await rows
          .filter({ hasText: name })
          .locator(`td[data-label="${column}"]`)
          .getByText(state, { exact: true })
          .waitFor();
    }
    await gateway.database.query('DELETE FROM request_log');
    await done();
  });

  it('says why a call failed, in the list and in words in the drawer', async () => {
    const quota = await row({
      status: 429,
      provider_error_type: 'insufficient_quota',
      provider_error_code: 'insufficient_quota',
      ttfb_ms: 80,
      duration_ms: 90,
    });
    const refused = await row({
      status: 502,
      outcome: 'upstream_error',
      error_code: 'upstream_unreachable',
      error_cause: 'ECONNREFUSED',
      duration_ms: 0.7,
    });
    const { page, done } = await signedIn(gateway.url, '/requests?range=1h');
    await settled(page);
    const results = page.getByRole('table', { name: 'Requests' }).locator('td[data-label="Result"]');
    await until(async () => (await results.count()) === 2);
    expect((await results.allInnerTexts()).map((text) => text.replace(/\s+/g, ' ')).sort()).toEqual([
      '429 insufficient_quota',
      '502 · Provider error ECONNREFUSED',
    ]);
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/reasons-1280-dark.png` });
    await goTo(page, `requests?range=1h&id=${refused}`);
    const reasons = page.getByRole('dialog').getByRole('region', { name: 'Why it failed' });
    await reasons.getByText('The gateway could not connect to the provider.').waitFor();
    await reasons.getByText('Nothing listens at its address and port').waitFor();
    await page.getByRole('dialog').getByText('No connection to the provider').waitFor();
    expect(await page.getByText(/No response for/).count()).toBe(0);
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/reason-1280.png` });
    await goTo(page, `requests?range=1h&id=${quota}`);
    await reasons.getByText('A retry does not help.').waitFor();
    expect(await seriousViolations(page)).toEqual([]);
    await goTo(page, 'requests?range=1h&provider_error=insufficient_quota');
    await until(async () => (await results.count()) === 1);
    await done();
  });

  it('shows the last hour in 60 bars, whose calls are those of 60 minutes', async () => {
    await gateway.database.query('DELETE FROM request_log');
    const now = Date.now();
    for (const [minutes, status] of [
      [0.2, 200],
      [10.5, 500],
      [10.6, 200],
      [50, 200],
      // Earlier than the hour, in its half hour.
      [61.5, 200],
      [75, 500],
    ] as const)
      await row({ status, cost_usd: '0.5' }, new Date(now - minutes * 60_000));
    const { page, done } = await signedIn(gateway.url, '/requests?range=1h');
    await page.getByRole('heading', { name: '4 calls, 1 failed' }).waitFor();
    await page.getByRole('switch', { name: 'Show as table' }).click({ force: true });
    const bars = page.getByRole('table', { name: 'Calls over time' }).locator('tbody tr');
    await until(async () => (await bars.count()) === 60);
    await goTo(page, '?range=1h');
    await page.getByRole('region', { name: 'Calls' }).getByText('4', { exact: true }).waitFor();
    await settled(page);
    // One of four calls failed, and one of two in the hour before.
    await page.getByRole('region', { name: 'Error rate' }).getByText('−25 points').waitFor();
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/hour-1280.png`, fullPage: true });
    expect(await seriousViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 320, height: 860 });
    await fitsWindow(page);
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/hour-320.png` });
    await done();
  });
});
