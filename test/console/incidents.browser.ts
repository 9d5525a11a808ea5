import {
  seriousViolations,
  describeInBrowser,
  fitsWindow,
  goTo,
  settled,
  signedIn,
  until,
} from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';
import { callWith } from './model-provider.js';
import { insertRow } from '../request-log/rows.js';
import { GATEWAY_ERROR_CODES } from '../../src/errors/gateway-error.js';

/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;

const FOCUS_IS_IN_SIGHT = `(({ activeElement: field }) => {
  const { x, y } = field.getBoundingClientRect();
  return document.elementFromPoint(x + 9, y + 9) === field;
})(document)`;

/** What this test asks of an element of the page: the types of the DOM are not those of Node. */
interface Focusable {
  matches: (selector: string) => boolean;
}

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
    await settled(page);
    const lines = await section.getByRole('listitem').allInnerTexts();
    expect(lines.map((text) => text.replace(/\s+/g, ' '))).toEqual([
      'No provider Add a provider first, or enable one: until then calls get 503. Add a provider',
    ]);
    expect(await page.getByText('All well').count()).toBe(0);
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
    const lines = await until(async () => {
      await settled(page);
      const texts = await section.getByRole('listitem').allInnerTexts();
      return texts.length === 3 && texts;
    });
    expect(lines.map((text) => text.replace(/\s+/g, ' '))).toEqual([
      expect.stringMatching(
        /^Failing 1 provider fails most of its calls: groq \(since \w+ \d+, \d\d:\d\d, 25 of 25 calls failed in the last minutes, mostly insufficient_quota\) Failed requests to groq$/,
      ),
      'Expiring 2 keys expire within 7 days: search/soon, search/later Expiring keys',
      'No price 1 model was called that has no price: groq/llama-4 See prices',
    ]);
    // Before the figures.
    const before = await page.evaluate<boolean>(
      `!!(document.querySelector('[aria-label="Cost"]').compareDocumentPosition(document.querySelector('main ul')) & 2)`,
    );
    expect(before).toBe(true);
    await checkAppearance(page, 'attention');
    await section.getByRole('link', { name: 'Failed requests to groq' }).click();
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    const { searchParams } = new URL(page.url());
    expect(['provider', 'failed', 'range'].map((name) => searchParams.get(name))).toEqual([
      'groq',
      'true',
      '1h',
    ]);
    await goTo(page, '');
    await section.getByRole('link', { name: 'Expiring keys' }).click();
    await page.getByText('Keys that expire before').waitFor();
    const keys = page.getByRole('table', { name: 'Gateway keys' }).locator('tbody tr');
    await until(async () => (await keys.count()) === 2);
    await page.getByRole('button', { name: 'Show all' }).click();
    await until(async () => (await keys.count()) > 2);
    await done();
  });

  it('says in the drawer of a provider since when it fails and why, and disables it in one click', async () => {
    const { page, done } = await signedIn(gateway.url, '/');
    await page
      .getByRole('region', { name: 'Needs attention' })
      .getByRole('link', { name: 'groq', exact: true })
      .click();
    const drawer = page.getByRole('dialog', { name: 'groq' });
    await drawer.getByText('25 of 25 calls failed in the last minutes, mostly insufficient_quota').waitFor();
    expect(await drawer.getByText(/^Failing since/).count()).toBe(1);
    const link = drawer.getByRole('link', { name: 'Its failed requests' });
    expect(await link.getAttribute('href')).toMatch(/\/requests\?range=1h&provider=groq&failed=true$/);
    expect(await drawer.getByRole('radio', { name: 'Errors' }).isChecked()).toBe(true);
    expect(await seriousViolations(page)).toEqual([]);
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/failing-provider-1280.png` });
    await drawer.getByRole('button', { name: 'Disable' }).click();
    await drawer.getByRole('button', { name: 'Enable' }).waitFor();
    expect(await gateway.admin('GET', '/admin/v1/providers/groq')).toMatchObject({ enabled: false });
    await drawer.getByText('25 of 25 calls failed').waitFor({ state: 'detached' });
    await drawer.getByRole('button', { name: 'Enable' }).click();
    await drawer.getByText('25 of 25 calls failed').waitFor();
    await done();
  });

  it('leads from a budget that rejects calls to it, and from there to the form with its amount', async () => {
    const { key: secret } = await gateway.admin<{ key: string }>('POST', '/admin/v1/keys', {
      team: 'search',
      name: 'spender',
      budgets: [
        { tokens: 9_000_000, period: 'month' },
        { tokens: 1, period: 'day' },
      ],
    });
    await gateway.admin('PATCH', '/admin/v1/teams/search', {
      budgets: [{ tokens: 5_000_000, period: 'month' }],
    });
    await gateway.admin('PATCH', '/admin/v1/providers/first', { default: true });
    await until(async () => (await callWith(gateway.url, secret)) === 402);
    const { page, done } = await signedIn(gateway.url, '/');
    const section = page.getByRole('region', { name: 'Needs attention' });
    await section.getByRole('link', { name: 'search/spender' }).click();
    const rows = page.getByRole('table', { name: 'Limits' }).locator('tbody tr');
    await rows.getByText('Blocking', { exact: true }).waitFor();
    expect(await rows.count()).toBe(1);
    await rows.getByRole('link', { name: /^Raise/ }).click();
    const form = page.getByRole('dialog', { name: 'Edit key spender' });
    // The one that rejects calls, not the first one.
    const budgets = form.getByRole('group', { name: /^Budget \d$/ });
    const amount = budgets.nth(1).getByLabel('Amount');
    expect(await amount.inputValue()).toBe('1');
    await until(() => amount.evaluate((field) => (field as unknown as Focusable).matches(':focus')));
    // In sight, too.
    await until(() => page.evaluate<boolean>(FOCUS_IS_IN_SIGHT));
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/raise-1280.png` });
    await amount.fill('1000000');
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    await page.getByRole('dialog', { name: 'search / spender' }).waitFor();
    expect(await gateway.admin('GET', '/admin/v1/limits?state=blocking')).toMatchObject({ data: [] });
    // It does not open again by itself.
    expect(new URL(page.url()).searchParams.get('edit')).toBe(null);
    await goTo(page, 'limits?id=00000000-0000-0000-0000-000000000001');
    await page.getByText('No limits match').waitFor();
    await page.getByRole('button', { name: 'Show all limits' }).click();
    await until(async () => (await rows.count()) === 3);
    await rows
      .filter({ hasText: 'Tokens per month', hasNotText: 'spender' })
      .getByRole('link', { name: /^Raise/ })
      .click();
    const team = page.getByRole('dialog', { name: 'Edit team search' });
    const ofTeam = team.getByRole('group', { name: 'Budget 1' }).getByLabel('Amount');
    await until(() => ofTeam.evaluate((field) => (field as unknown as Focusable).matches(':focus')));
    await team.getByRole('button', { name: 'Cancel' }).click();
    await team.waitFor({ state: 'detached' });
    expect(await seriousViolations(page)).toEqual([]);
    await done();
  });

  it('says what a new price does to stored calls, and reprices all of them, in as many parts as the gateway makes', async () => {
    const { page, done } = await signedIn(gateway.url, '/prices?new=1');
    const form = page.getByRole('dialog', { name: 'Add a price' });
    await form.getByLabel('Provider or price list').fill('groq');
    await form.getByLabel('Model').fill('llama-4');
    await form.getByLabel('Input').fill('2');
    await form.getByRole('button', { name: 'Add price' }).click();
    const notice = page.getByRole('status').filter({ hasText: 'Saved the price of llama-4' });
    await notice.waitFor();
    await form.waitFor({ state: 'detached' });
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/saved-price-1280.png` });
    expect(await seriousViolations(page)).toEqual([]);
    await notice.getByRole('button', { name: 'reprice them' }).click();
    const dialog = page.getByRole('dialog', { name: 'Reprice calls' });
    expect(await dialog.getByLabel('Only this model').inputValue()).toBe('llama-4');
    const bodies: Record<string, unknown>[] = [];
    await page.route('**/admin/v1/prices/reprice', async (route) => {
      const body = route.request().postDataJSON() as Record<string, unknown>;
      bodies.push(body);
      const next_cursor = body.cursor === undefined ? 'second-part' : null;
      await route.fulfill({
        json: {
          ...{ rows: 1_000, changed: 600, cost_before: '1.5', cost_after: '2' },
          ...{ dry_run: body.dry_run, next_cursor },
        },
      });
    });
    await dialog.getByRole('button', { name: 'Show what would change' }).click();
    await dialog.getByRole('button', { name: 'Reprice 1,200 calls' }).click();
    await dialog.getByText('Cost after').waitFor();
    if (PICTURES) await page.screenshot({ path: `${PICTURES}/repriced-1280.png` });
    const facts = await dialog.locator('dd').allInnerTexts();
    expect(facts).toEqual(['2,000', '1,200', '$3.00', '$4.00']);
    expect(bodies.map(({ model, dry_run, cursor }) => [model, dry_run, cursor])).toEqual([
      ['llama-4', true, undefined],
      ['llama-4', true, 'second-part'],
      ['llama-4', false, undefined],
      ['llama-4', false, 'second-part'],
    ]);
    // 30 days up to today.
    const [{ from, to }] = bodies as [{ from: string; to: string }];
    expect(Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000)).toBe(30);
    await page.unroute('**/admin/v1/prices/reprice');
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
    const [errors] = await Promise.all([
      page.waitForEvent('popup'),
      reasons.getByRole('link', { name: 'upstream_unreachable' }).click(),
    ]);
    const advice = errors.locator('li[data-shown]');
    await advice.waitFor();
    expect(await advice.innerText()).toContain('the provider is unreachable');
    await until(async () => ((await advice.boundingBox())?.y ?? Infinity) < 860);
    // Every code has its advice, and nothing of the Markdown is left.
    const ids = await errors.evaluate<string[]>(
      `[...document.querySelectorAll('li [id]')].map(({ id }) => id)`,
    );
    expect(ids).toEqual(expect.arrayContaining([...GATEWAY_ERROR_CODES]));
    const text = await errors.locator('main').innerText();
    expect(text.match(/<!--|`|\]\(|\\<|^#+ |^> /gm)).toBeNull();
    await errors.close();
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
