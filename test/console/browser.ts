import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
  type Request,
} from 'playwright-core';
import { afterFile } from '../support/after-file.js';
import { eventually, timePasses } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';

// The shell has no windows and tabs to draw, which takes less time.
const PLACES = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium', '/usr/bin/google-chrome'];

/** The browser of CHROMIUM, else Debian's; undefined if there is none. @throws Error if CHROMIUM_REQUIRED and none */
const CHROMIUM = [process.env.CHROMIUM, ...PLACES].find((path) => path && existsSync(path));
if (CHROMIUM === undefined) {
  const remedy = 'Install the package chromium-headless-shell, or set CHROMIUM to the path of a browser.';
  if (process.env.CHROMIUM_REQUIRED === '1') throw new Error(`There is no Chromium. ${remedy}`);
  process.stdout.write(
    `Not run, because there is no Chromium: the tests of the console in a browser. ${remedy}\n`,
  );
}

/** `describe` where there is a browser, else skipped. */
export const describeInBrowser = CHROMIUM === undefined ? describe.skip : describe;

let browser: Browser | undefined;
afterFile(async () => {
  contexts.clear();
  await browser?.close();
  browser = undefined;
});

/** A page that notes whatever a console must not do. */
export interface WatchedPage {
  page: Page;
  /** Problems since the last time, without those that match. */
  take: (...expected: RegExp[]) => string[];
  /** @throws AssertionError for problems that match none of those expected, and for a secret that the page has kept */
  check: (...expected: RegExp[]) => Promise<void>;
  /** Checks the page and closes it. @throws AssertionError as `check` does */
  done: (...expected: RegExp[]) => Promise<void>;
}

/** What no page may keep. */
export const SECRETS = new Set([ADMIN_TOKEN]);

/** Everything that a page holds: its elements, what was typed, its address, and what it stored. */
const KEPT = `document.documentElement.outerHTML + [...document.querySelectorAll('input')].map((input) => input.value)
  + location.href + document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + JSON.stringify(history.state)`;

const DEFAULTS = {
  viewport: { width: 1280, height: 860 },
  locale: 'en-US',
  timezoneId: 'Europe/Berlin',
  // Transitions and animations cost a browser without a graphics card time.
  reducedMotion: 'reduce',
} as const;

/** A browser context: cookies, storage and cache. */
async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  browser ??= await chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu'],
    // With scrollbars, as on a desktop; the pictures of the docs have none.
    ...(process.env.POSTERN_WRITE_DOCS !== '1' && { ignoreDefaultArgs: ['--hide-scrollbars'] }),
  });
  return browser.newContext({ ...DEFAULTS, ...options });
}

/** Opens a page of the console for somebody who is not signed in. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await newContext(options);
  const watched = await watch(url, context);
  return {
    ...watched,
    done: async (...expected) => {
      await watched.done(...expected);
      await context.close();
    },
  };
}

/** What each page reads or loads at the moment. */
const underWay = new WeakMap<Page, Set<Request>>();

/** A page in a context, watched. */
async function watch(url: string, context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const requests = new Set<Request>();
  underWay.set(page, requests);
  page.on('request', (request) => {
    // A new document has nothing to do with what the one before was waiting for.
    if (request.isNavigationRequest()) requests.clear();
    else if (['fetch', 'script'].includes(request.resourceType())) requests.add(request);
  });
  page.on('requestfinished', (request) => requests.delete(request));
  page.on('requestfailed', (request) => requests.delete(request));
  /** Errors and warnings of the browser's console, violations of the content security policy, requests elsewhere. */
  const problems: string[] = [];
  // Chromium reports a violated content security policy here, too.
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      problems.push(`${message.type()}: ${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.message}`));
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    const address = request.url();
    if (!address.startsWith(`${url}/`) && !/^(data|blob):/.test(address))
      problems.push(`request to ${address}`);
  });
  const take = (...expected: RegExp[]) =>
    problems.splice(0).filter((problem) => !expected.some((pattern) => pattern.test(problem)));
  const check = async (...expected: RegExp[]) => {
    const kept = await page.evaluate<string>(KEPT);
    expect([...SECRETS].filter((secret) => kept.includes(secret))).toEqual([]);
    expect(take(...expected)).toEqual([]);
  };
  return {
    page,
    take,
    check,
    done: async (...expected) => {
      await check(...expected);
      await page.close();
    },
  };
}

/** One context for each gateway, token and time zone, so that the console is loaded into few. */
const contexts = new Map<string, Promise<BrowserContext>>();

interface SignedIn {
  token?: string;
  timezoneId?: string;
}

/** Opens a page of the console for somebody who is signed in. */
export async function signedIn(
  url: string,
  path = '/',
  { token = ADMIN_TOKEN, timezoneId = DEFAULTS.timezoneId }: SignedIn = {},
): Promise<WatchedPage> {
  const name = JSON.stringify([url, token, timezoneId]);
  if (!contexts.has(name)) contexts.set(name, signedInContext(url, token, timezoneId));
  const watched = await watch(url, await contexts.get(name)!);
  await watched.page.goto(`${url}/console${path}`);
  await watched.page.getByRole('navigation', { name: 'Pages' }).waitFor();
  return watched;
}

async function signedInContext(url: string, token: string, timezoneId: string): Promise<BrowserContext> {
  const context = await newContext({ timezoneId });
  const response = await context.request.post(`${url}/admin/v1/session`, { data: { token } });
  if (response.status() !== 204) throw new Error(`${response.status()} ${await response.text()}`);
  // Stays open: without it, each page of this context would open a window of its own, which takes more time than the page.
  await context.newPage();
  return context;
}

/** Signs in by the form. */
export async function signIn(page: Page, token = ADMIN_TOKEN): Promise<void> {
  await page.getByLabel('Admin token').fill(token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
}

/**
 * Nothing is loading. Nothing fades in or out, which takes contrast away, tables have been measured, which happens in the next
 * frame, and charts are as wide as their place. On a busy machine, the first question after a click or a change of the window
 * comes before all of it.
 */
const IS_STILL = `new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted))).then(() =>
  document.querySelector('[aria-busy="true"], .mantine-Skeleton-root, [data-loading="true"]') === null
  && document.getAnimations().every((one) =>
    one.playState !== 'running' || one.effect.getComputedTiming().iterations === Infinity)
  && [...document.querySelectorAll('.recharts-responsive-container')].every((place) =>
    place.clientWidth === 0 || Math.abs((place.querySelector('.recharts-wrapper')?.clientWidth ?? -9) - place.clientWidth) <= 1))`;

/** Waits until everything is there that the page loads, also what it loads before it opens a form, and nothing moves or fades. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await still(page);
}

/** Waits as `settled` does, also for a page without a heading. */
export async function still(page: Page): Promise<void> {
  const isQuiet = () => underWay.get(page)!.size === 0;
  // Not waitForFunction: it evaluates text in the page, which the content security policy forbids. Quiet before, so that the
  // last answer has been drawn, and after, because what it shows may ask for more.
  await until(async () => isQuiet() && (await page.evaluate<boolean>(IS_STILL)) && isQuiet());
}

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResult {
  violations: { id: string; impact: string | null; nodes: { target: string[]; failureSummary?: string }[] }[];
}

/** What axe-core is to look at, and what counts. */
interface Looked {
  /** These rules alone; absent: all. */
  rules?: string[];
  /** All rules but these. */
  without?: string[];
  impacts?: string[];
  /** Also the page below an open dialog, which is as it was before. */
  whole?: boolean;
}

/** What axe-core finds that is serious, by WCAG 2.2 AA and its best practices. */
export function seriousViolations(page: Page, looked: Looked = {}): Promise<string[]> {
  return violations(page, { ...looked, impacts: ['serious', 'critical'] });
}

/** What is above the page: dialogs and menus, and the lists beside them. */
const LAYERS = `document.querySelectorAll('body > :not(#root, script, style)')`;

/** What axe-core finds at all, in what an open dialog or menu shows, else in the page. */
export async function violations(
  page: Page,
  { rules, without = [], impacts, whole = false }: Looked = {},
): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(await axe);
  await still(page);
  const options = JSON.stringify({
    resultTypes: ['violations'],
    ...(rules && { runOnly: rules }),
    rules: Object.fromEntries(without.map((rule) => [rule, { enabled: false }])),
  });
  const context = whole
    ? 'document'
    : `document.querySelector('[role="dialog"], [role="menu"]') ? ${LAYERS} : document`;
  const found = (await page.evaluate<AxeResult>(`axe.run(${context}, ${options})`)).violations;
  return found
    .filter(({ impact }) => impacts?.includes(String(impact)) ?? true)
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')} ${failureSummary ?? ''}`),
    );
}

/** Shows the page in the other colours, without loading it again. They change at once: see `reducedMotion`. */
export async function inColours(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.locator(`html[data-mantine-color-scheme="${colorScheme}"]`).waitFor({ state: 'attached' });
}

/** Waits until the page is no wider than the window. @throws Error if it stays wider */
export async function fitsWindow(page: Page): Promise<void> {
  await until(() => page.evaluate<boolean>('document.documentElement.scrollWidth <= window.innerWidth'));
}

/** Goes to a page of the console as its links do, without loading it again. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState({}, '', ${JSON.stringify(`/console/${path}`)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
}

/**
 * Goes to a page of the console, with everything closed that was open on the one before, without loading it again.
 *
 * @param size of the window, if it is to change before the page is drawn
 */
export async function openAfresh(
  page: Page,
  path: string,
  size?: { width: number; height: number },
): Promise<void> {
  const nothing = page.getByRole('heading', { level: 1, name: 'Page not found' });
  await goTo(page, 'no-such-page');
  await nothing.waitFor();
  if (size) await page.setViewportSize(size);
  await goTo(page, path);
  // The page before is shown until the next one is drawn.
  if (path !== 'no-such-page') await nothing.waitFor({ state: 'detached' });
}

/** Asks again, a tenth of a second apart: each question costs the browser time. */
export function until<T>(ask: () => Promise<T | undefined | false>): Promise<T> {
  return eventually(async () => {
    const answer = await ask();
    if (answer === undefined || answer === false)
      await timePasses(100, 'each question costs the browser time');
    return answer;
  });
}
