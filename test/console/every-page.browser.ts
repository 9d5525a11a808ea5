import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import {
  describeInBrowser,
  openAfresh,
  inColours,
  openPage,
  settled,
  signedIn,
  violations,
  type WatchedPage,
} from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { NAME_63, ROUTE, seedHostileData } from './hostile-data.js';
import { OF_COLOURS } from './flows/appearance.js';
import { cutTexts } from './layout.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';

/** Of a phone and of a laptop; with `POSTERN_TEST_FULL=1` those between and beyond as well. */
const WIDTHS = process.env.POSTERN_TEST_FULL === '1' ? [1280, 768, 1024, 1920, 320] : [1280, 320];
const HEIGHT = 860;
/** `POSTERN_PICTURES=<folder>` writes a picture of each page and state there, in both colour schemes. */
const PICTURES = process.env.POSTERN_PICTURES;

const PAGES = [
  '',
  'usage?by=team&then=key',
  'usage?by=model&then=provider&range=1h',
  'requests?range=1h',
  'requests?range=1h&columns=started_at,result,provider,model,path,end_user,session,user_agent,id,cost',
  'keys',
  'teams',
  'limits',
  'providers',
  'jobs',
  'prices',
  'access',
  'people',
  'trusts',
  'policies',
  'webhooks',
  'sinks',
  'audit',
  'system',
  'no-such-page',
];

/** A name, the address, and what is pressed there. */
const OPENED: [name: string, path: string, ...clicks: string[]][] = [
  ['drawer-request', 'requests?id=CALL'],
  ['drawer-key', 'keys?key=KEY'],
  ['drawer-team', 'teams?open=TEAM'],
  ['drawer-provider', 'providers?open=openai'],
  ['drawer-route', `providers?open=${ROUTE}`],
  ['drawer-price', 'prices?open=PRICE'],
  ['drawer-person', 'people?open=PERSON'],
  ['drawer-trust', 'trusts?open=TRUST'],
  ['drawer-webhook', 'webhooks?open=WEBHOOK'],
  ['drawer-sink', 'sinks?open=SINK'],
  ['form-key', 'keys?new=1'],
  ['form-key-long', 'keys?new=1', 'Expiry, limits and more', 'Add a budget'],
  ['form-key-edit', 'keys?key=KEY', 'Edit'],
  ['form-rotate', 'keys?key=KEY', 'Rotate'],
  ['form-revoke', 'keys?key=KEY', 'Revoke'],
  ['form-find', 'keys?find=1'],
  ['form-team', 'teams?new=1', 'Add a budget'],
  ['form-team-edit', 'teams?open=TEAM', 'Edit'],
  ['form-group', 'teams', 'Create group', 'Add a budget'],
  ['form-all-calls', 'limits', 'Limits of all calls', 'Add a budget', 'Only some calls'],
  ['form-provider', 'providers?new=1'],
  ['form-provider-edit', `providers?open=${NAME_63}`, 'Edit'],
  ['form-route', 'providers?new=route'],
  ['form-price', 'prices?new=1'],
  ['form-token', 'access?new=1'],
  ['form-trust', 'trusts?new=1', 'Add a condition'],
  ['form-trust-edit', 'trusts?open=TRUST', 'Edit'],
  ['drawer-policy', 'policies?open=POLICY'],
  ['form-policy', 'policies?new=1'],
  ['form-policy-edit', 'policies?open=POLICY', 'Edit'],
  ['form-policy-test', 'policies?open=POLICY', 'Test'],
  ['form-webhook', 'webhooks?new=1'],
  ['form-sink', 'sinks?new=1'],
  ['form-reprice', 'prices?reprice=1'],
  ['menu-range', 'requests', 'Time range'],
  ['menu-columns', 'requests', 'Columns'],
  ['menu-filter', 'requests', 'Add filter'],
];

/** What those buttons open, by its name. Others show more of the form that they are in. */
const OPENS: Record<string, RegExp> = {
  Edit: /^Edit /,
  Rotate: /^Rotate key /,
  Revoke: /^Revoke key /,
  Test: /^Test /,
  'Create group': /^Create a group$/,
  'Limits of all calls': /^Limits of all calls$/,
  'Time range': /^Time range/,
  'Add filter': /^Add filter/,
  // A menu.
  Columns: /^Columns/,
};

/** A drawer, a form and a menu with which the page below is looked at as well: it is as inert below each other one. */
const WITH_THE_PAGE = ['drawer-key', 'form-key', 'menu-filter'];

// One gateway: first without data, then with the worst data. Each page at each width, and with everything that opens on it.
describeInBrowser('every page of the console', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => void Object.assign(gateway, await startConsoleGateway()));
  afterAll(() => gateway.stop());

  // One page for all: loading the console costs more than most of what is looked at here.
  let watched: WatchedPage;
  beforeAll(async () => void (watched = await signedIn(gateway.url, '/no-such-page')));
  afterEach(() => watched.check());

  describe('without any data', () => {
    it.each(PAGES)('/%s', async (path) => {
      await show(path);
      await fits(`empty-${nameOf(path)}`);
    });
  });

  describe('with long names, huge figures and 10,000 keys', () => {
    let ids: Record<string, string>;
    beforeAll(async () => {
      const { database, admin } = gateway;
      await database.query('TRUNCATE usage_slot, usage_day');
      gateway.seeded = await seedConsole(database.url, { rows: 10_000 });
      await seedProvidersAndLimits(database.url, admin);
      const { teamId, keyId, callId, priceId, personId, trustId, policyId, webhookId, sinkId } =
        await seedHostileData(gateway);
      ids = {
        ...{ TEAM: teamId, KEY: keyId, CALL: callId, POLICY: policyId },
        ...{ PRICE: priceId, PERSON: personId, TRUST: trustId, WEBHOOK: webhookId, SINK: sinkId },
      };
      // Nothing of what it had read before is shown.
      await watched.page.reload();
    });

    it.each(PAGES)('/%s', async (path) => {
      await show(path);
      expect(await watched.page.getByRole('heading', { level: 1 }).count()).toBe(1);
      await fits(nameOf(path), { wideInDark: true });
    });

    it.each(['keys?find=1', 'providers?new=route', 'prices?reprice=1', 'webhooks?new=1', 'sinks?new=1'])(
      'a new tab with /%s opens it',
      async (path) => {
        await watched.page.goto(`${gateway.url}/console/${path}`);
        await watched.page.getByRole('dialog').waitFor();
        await settled(watched.page);
      },
    );

    it.each(OPENED)('%s', async (name, path, ...clicks) => {
      await show(path.replace(/[A-Z]{3,}/, (id) => ids[id]!));
      // What the address opens may come after the page: then what is pressed is in it.
      if (path.includes('?')) await watched.page.getByRole('dialog').first().waitFor();
      for (const click of clicks) await press(watched.page, click);
      await fits(name, { whole: WITH_THE_PAGE.includes(name) });
    });

    it('is never wider than the window while the window is resized', async () => {
      await show('');
      // A chart has the width of the window before until it is drawn again.
      const isWider = await watched.page.evaluate<[number, boolean]>(`(() => {
        const charts = document.querySelectorAll('.recharts-wrapper');
        for (const chart of charts) chart.style.width = '3000px';
        const root = document.documentElement;
        return [charts.length, root.scrollWidth > root.clientWidth];
      })()`);
      expect(isWider).toEqual([1, false]);
      // The space for the navigation is there or not at once, also where styles change in transitions.
      await watched.page.emulateMedia({ reducedMotion: 'no-preference' });
      const transition = `getComputedStyle(document.querySelector('main')).transitionProperty`;
      expect(await watched.page.evaluate<string>(transition)).toBe('none');
      await watched.page.emulateMedia({ reducedMotion: 'reduce' });
    });

    it('moves nothing when a drawer opens, which ends where the window ends', async () => {
      const { page } = watched;
      // A page with a scrollbar of its own, and one without.
      for (const path of ['requests?range=1h&id=CALL', 'sinks?new=1']) {
        await show(path.split('?')[0]!);
        const before = await rightEdges(page);
        await show(path.replace('CALL', ids.CALL!));
        expect(await rightEdges(page)).toEqual(before);
        const overlay = `document.querySelector('[role="dialog"]').parentElement.getBoundingClientRect().right`;
        expect(await page.evaluate<number>(overlay)).toBe(1280);
      }
    });

    it('the page of whoever has a key', async () => {
      const own = await openPage(gateway.url);
      const main = watched;
      watched = own;
      await own.page.goto(`${gateway.url}/console/key`);
      await fits('key-empty');
      await own.page.getByLabel('Gateway key').first().fill(gateway.seeded.secret);
      await own.page.getByRole('button', { name: 'Show', exact: true }).click();
      await own.page.getByRole('heading', { name: 'search / production' }).waitFor();
      await fits('key');
      watched = main;
      await own.done();
    });

    it('the page of errors', async () => {
      const main = watched;
      watched = await openPage(gateway.url);
      await watched.page.goto(`${gateway.url}/console/errors#insufficient_quota`);
      await watched.page.locator('li[data-shown]').waitFor();
      await fits('errors');
      await watched.page.goto(`${gateway.url}/console/errors#of_a_module`);
      await watched.page.getByText('A module that was added').waitFor();
      await watched.done();
      watched = main;
    });

    it('the sign-in', async () => {
      const main = watched;
      watched = await openPage(gateway.url);
      await watched.page.goto(`${gateway.url}/console`);
      await watched.page.getByLabel('Admin token').waitFor();
      await fits('sign-in');
      await watched.done();
      watched = main;
    });
  });

  async function show(path: string): Promise<void> {
    const { page } = watched;
    await openAfresh(page, path, { width: 1280, height: HEIGHT });
    await settled(page);
  }

  /**
   * @param whole also the page below an open dialog
   * @param wideInDark also the colours of a wide window in the dark: a narrow one does not show the navigation
   * @throws AssertionError for what is cut at some width, and for what axe finds in a wide window and, in the dark, in a narrow one
   */
  async function fits(name: string, { whole = false, wideInDark = false } = {}): Promise<void> {
    const { page } = watched;
    // Each colour scheme at one width: colours do not depend on it.
    const looks: { width: number; colours: 'light' | 'dark'; rules?: string[] }[] = WIDTHS.map((width) => ({
      width,
      colours: width === 320 ? 'dark' : 'light',
    }));
    if (wideInDark) looks.push({ width: 1280, colours: 'dark', rules: OF_COLOURS });
    // Other colours cost as much as what axe does: those come first that the page before had last.
    if (await page.evaluate<boolean>(`matchMedia('(prefers-color-scheme: dark)').matches`)) looks.reverse();
    const found: string[] = [];
    for (const { width, colours, rules } of looks) {
      await page.setViewportSize({ width, height: HEIGHT });
      await inColours(page, colours);
      await settled(page);
      found.push(...(await cutTexts(page)).map((text) => `${width} px: ${text}`));
      if (width !== 320 && width !== 1280) continue;
      found.push(
        ...(await violations(page, { whole, ...(rules && { rules }) })).map((text) => `${width} px: ${text}`),
      );
      if (PICTURES !== undefined) await pictures(page, `${name}-${width}`);
    }
    expect(found).toEqual([]);
  }
});

/** Where the header and the content of the page end. */
function rightEdges(page: Page): Promise<number[]> {
  return page.evaluate(
    `['header', '#main'].map((place) => document.querySelector(place).getBoundingClientRect().right)`,
  );
}

/** Presses a button of what is on top, and waits for what it opens, which may have to load first. */
async function press(page: Page, name: string): Promise<void> {
  const layer = page.locator('main, [role="dialog"]').last();
  await layer
    .getByRole('button', { name, exact: !name.startsWith('Time') })
    .or(layer.getByRole('button', { name: new RegExp(`^${name}`) }))
    .first()
    .click();
  const opened = OPENS[name];
  if (opened) await page.getByRole('dialog', { name: opened }).or(page.getByRole('menu')).waitFor();
}

const nameOf = (path: string) => path.replace(/\W+/g, '-').replace(/-$/, '').slice(0, 60) || 'overview';

async function pictures(page: Page, name: string): Promise<void> {
  mkdirSync(PICTURES!, { recursive: true });
  for (const colours of ['light', 'dark'] as const) {
    await inColours(page, colours);
    await page.mouse.move(0, 0);
    const isDialog = (await page.getByRole('dialog').count()) > 0;
    await page.screenshot({ path: join(PICTURES!, `${name}-${colours}.png`), fullPage: !isDialog });
  }
  await inColours(page, 'light');
}
