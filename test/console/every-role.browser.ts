import type { Page } from 'playwright-core';
import {
  describeInBrowser,
  openAfresh,
  SECRETS,
  settled,
  signedIn,
  violations,
  type WatchedPage,
} from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { cutTexts } from './layout.js';
import { seedConsole, seedProvidersAndLimits } from './seed.js';

/** Of a phone and of a laptop; with `POSTERN_TEST_FULL=1` those between and beyond as well. */
const WIDTHS = process.env.POSTERN_TEST_FULL === '1' ? [1280, 320, 768, 1024, 1920] : [1280, 320];
const OF_TEAMS = ['', 'usage', 'requests', 'keys', 'teams', 'limits'];
const OTHERS = [
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
];

/** What changes something, by the first word of its button. */
const CHANGES =
  /^(Create|Add(?! filter)|Edit|Rotate|Revoke|Disable|Enable|Pause|Resume|Send|End|Raise|Reset|Remove|Save|Set|Reprice|Change|Test)( |$)/;

/** The buttons that they have, where there are any. */
const OF_VIEWERS: Record<string, string[]> = {
  // Of the session that is one's own.
  access: ['End'],
};
const OF_LEADS: Record<string, string[]> = {
  keys: ['Create key'],
  'keys?key=KEY': ['Edit', 'Rotate', 'Disable', 'Revoke'],
  'teams?open=TEAM': ['Edit'],
};

/** The forms of a lead: each opens, asks for nothing that is refused, and is sent as it is. */
const FORMS: [path: string, button: string, form: string | RegExp][] = [
  ['keys', 'Create key', 'Create a key'],
  ['keys?key=KEY', 'Edit', /^Edit key /],
  ['keys?key=KEY', 'Rotate', /^Rotate key /],
  ['keys?key=KEY', 'Revoke', /^Revoke key /],
  ['teams?open=TEAM', 'Edit', /^Edit team /],
];

// The pages and drawers of those who are no administrators, at the widths that people have.
describeInBrowser('the console of a viewer and of a lead', () => {
  const gateway = {} as ConsoleGateway;
  const tokens: Record<string, string> = {};
  let ids: Record<string, string>;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
    const { database, admin } = gateway;
    gateway.seeded = await seedConsole(database.url, { rows: 10_000 });
    await seedProvidersAndLimits(database.url, admin);
    for (const [role, teams] of [
      ['viewer', undefined],
      ['lead', ['search']],
    ] as const) {
      const body = { name: role, role, ...(teams && { teams }) };
      tokens[role] = (await admin<{ token: string }>('POST', '/admin/v1/tokens', body)).token;
      SECRETS.add(tokens[role]);
    }
    ids = await database.find<Record<string, string>>(
      `SELECT t.id AS "TEAM", k.id AS "KEY",
              (SELECT id FROM request_log WHERE key_id = k.id AND cost_usd IS NOT NULL
               ORDER BY started_at DESC LIMIT 1) AS "CALL"
       FROM team t JOIN gateway_key k ON k.team_id = t.id AND k.name = 'production' WHERE t.name = 'search'`,
    );
  });
  afterAll(() => gateway.stop());

  /** One for each of them: loading the console costs more than most of what is looked at here. */
  const pages: Record<string, Promise<WatchedPage>> = {};
  const pageOf = (role: string) =>
    (pages[role] ??= signedIn(gateway.url, '/no-such-page', { token: tokens[role]! }));

  const addressed = (path: string) => path.replace(/[A-Z]{3,}/, (name) => ids[name]!);
  const DRAWERS = ['requests?range=90d&id=CALL', 'keys?key=KEY', 'teams?open=TEAM', 'providers?open=openai'];
  const PAGES: [role: string, path: string][] = [
    ...[...OF_TEAMS, ...OTHERS, ...DRAWERS].map((path): [string, string] => ['viewer', path]),
    ...[...OF_TEAMS, ...DRAWERS.slice(0, 3)].map((path): [string, string] => ['lead', path]),
  ];

  it.each(PAGES)(
    'a %s has the page /%s whole at every width, and is offered nothing that is refused',
    async (role, path) => {
      const { page, check } = await pageOf(role);
      await openAfresh(page, addressed(path), { width: 1280, height: 860 });
      if (DRAWERS.includes(path)) await page.getByRole('dialog').waitFor();
      const found: string[] = [];
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 860 });
        await settled(page);
        found.push(...(await cutTexts(page)).map((text) => `${width} px: ${text}`));
        // At other widths there is nothing that administrators do not have as well: see every-page.browser.ts.
        if (width === 1280) found.push(...(await violations(page)));
        const offered = (role === 'lead' ? OF_LEADS : OF_VIEWERS)[path] ?? [];
        const changes = await topLayer(page).getByRole('button', { name: CHANGES }).allInnerTexts();
        expect([width, changes]).toEqual([width, offered]);
      }
      expect(found).toEqual([]);
      const allowed = role === 'lead' ? OF_TEAMS : [...OF_TEAMS, ...OTHERS];
      expect((await linkedPages(page)).filter((name) => !allowed.includes(name))).toEqual([]);
      expect(await page.getByRole('main').getByRole('alert').count()).toBe(0);
      // The browser reports every request that was refused.
      await check();
    },
  );

  it.each(FORMS)(
    'a lead at /%s: the form of %s opens without a refused request',
    async (path, name, title) => {
      const { page, check } = await pageOf('lead');
      await openAfresh(page, addressed(path), { width: 1280, height: 860 });
      if (path.includes('?')) await page.getByRole('dialog').waitFor();
      await settled(page);
      await topLayer(page).getByRole('button', { name, exact: true }).first().click();
      await page.getByRole('dialog', { name: title }).waitFor();
      await settled(page);
      expect(await violations(page)).toEqual([]);
      for (const width of [1280, 320]) {
        await page.setViewportSize({ width, height: 860 });
        await settled(page);
        expect([width, await cutTexts(page)]).toEqual([width, []]);
      }
      await check();
    },
  );

  it.each(OTHERS)('a lead who opens /%s by its address is told that it is not allowed', async (path) => {
    const { page, check } = await pageOf('lead');
    await openAfresh(page, path);
    await page.getByRole('main').getByText('Not allowed', { exact: true }).waitFor();
    await settled(page);
    expect(await page.getByRole('main').getByText('Not allowed').count()).toBe(1);
    expect(await violations(page)).toEqual([]);
    // Nothing is asked for that would be refused.
    await check();
  });
});

function topLayer(page: Page) {
  return page.locator('[role="dialog"], main').last();
}

/** The pages to which anything on this page leads. */
async function linkedPages(page: Page): Promise<string[]> {
  const paths = await page.evaluate<string[]>(
    `[...document.querySelectorAll('a[href^="/console"]')].map((link) => new URL(link.href).pathname)`,
  );
  return [...new Set(paths.map((path) => path.replace(/^\/console\/?/, '')))];
}
