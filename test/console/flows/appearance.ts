import type { Page } from 'playwright-core';
import {
  fitsWindow,
  goTo,
  inColours,
  seriousViolations,
  settled,
  signedIn,
  type WatchedPage,
} from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';

const WIDE = { width: 1280, height: 860 };
const NARROW = { width: 320, height: 800 };

const PAGES = [
  '',
  'usage?then=model',
  'requests',
  'keys',
  'teams',
  'limits',
  'providers',
  'jobs',
  'prices',
  'access',
  'webhooks',
  'sinks',
  'audit',
  'system',
];

/** Each page and each form: axe, both colour schemes, a narrow window. */
export function appearance(gateway: ConsoleGateway): void {
  let watched: WatchedPage;
  beforeAll(async () => {
    watched = await signedIn(gateway.url);
  });
  afterAll(() => watched.done());

  it.each(PAGES)('the page /%s', async (path) => {
    const { page } = watched;
    await goTo(page, path);
    await settled(page);
    await checkAppearance(page);
    expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1);
    expect(watched.take()).toEqual([]);
  });

  it.each([
    'requests?id=CALL',
    'keys?key=KEY',
    'keys?new=1',
    'keys?find=1',
    'teams?open=TEAM',
    'teams?new=1',
    'providers?open=openai',
    'providers?new=1',
    'providers?new=route',
    'prices?new=1',
    'access?new=1',
    'webhooks?new=1',
    'sinks?new=1',
    'prices?reprice=1',
  ])('the drawer or form /%s', async (path) => {
    const ids = await gateway.database.find<Record<string, string>>(
      `SELECT id AS "CALL", key_id AS "KEY", team_id AS "TEAM" FROM request_log
       WHERE status = 200 AND cost_usd IS NOT NULL ORDER BY started_at DESC LIMIT 1`,
    );
    const { page } = watched;
    await page.goto(`${gateway.url}/console/${path.replace(/[A-Z]+/, (name) => ids[name]!)}`);
    await page.getByRole('dialog').waitFor();
    await settled(page);
    await checkAppearance(page);
    expect(watched.take()).toEqual([]);
  });
}

/** @throws AssertionError for what axe finds serious, in either colour scheme, and for a page that is too wide */
export async function checkAppearance(page: Page): Promise<void> {
  expect(await seriousViolations(page)).toEqual([]);
  // The rest is the same in the dark.
  await inColours(page, 'dark');
  expect(await seriousViolations(page, ['color-contrast', 'link-in-text-block'])).toEqual([]);
  await inColours(page, 'light');
  await page.setViewportSize(NARROW);
  await fitsWindow(page);
  await page.setViewportSize(WIDE);
}
