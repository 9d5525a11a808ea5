import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { afterFile } from '../support/after-file.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-headless-shell', '/usr/bin/google-chrome'];

/** The browser of CHROMIUM, else Debian's; undefined if there is none. @throws Error if CHROMIUM_REQUIRED and none */
export const CHROMIUM = [process.env.CHROMIUM, ...PLACES].find((path) => path && existsSync(path));
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
  await browser?.close();
  browser = undefined;
});

/** A page that notes whatever a console must not do. */
export interface WatchedPage {
  page: Page;
  context: BrowserContext;
  /** Errors and warnings of the browser's console, violations of the content security policy, requests elsewhere. */
  problems: string[];
  /** Problems since the last time, without those that match. */
  take: (...expected: RegExp[]) => string[];
}

/** Opens a page of the console in a browser context of its own: no cookie, no storage. */
export async function openPage(url: string, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    locale: 'en-US',
    timezoneId: 'Europe/Berlin',
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const problems: string[] = [];
  // Chromium reports a violated content security policy here, too.
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) problems.push(`${message.type()}: ${message.text()}`);
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
  return {
    page,
    context,
    problems,
    take: (...expected) =>
      problems.splice(0).filter((problem) => !expected.some((pattern) => pattern.test(problem))),
  };
}

/** Opens a page of the console and signs in there. */
export async function signedIn(
  url: string,
  path = '/',
  options: BrowserContextOptions = {},
  token = ADMIN_TOKEN,
): Promise<WatchedPage> {
  const watched = await openPage(url, options);
  await watched.page.goto(`${url}/console${path}`);
  await signIn(watched.page, token);
  return watched;
}

export async function signIn(page: Page, token = ADMIN_TOKEN): Promise<void> {
  await page.getByLabel('Admin token').fill(token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page
    .getByRole('navigation', { name: 'Pages' })
    .or(page.getByRole('button', { name: 'Open navigation' }))
    .first()
    .waitFor();
}

const LOADING = '[aria-busy="true"], .mantine-Skeleton-root, [data-loading="true"]';

/** Waits until everything that is loading is there. */
export async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  // Not waitForFunction: it evaluates text in the page, which the content security policy forbids.
  await eventually(() =>
    page.evaluate<boolean>(`document.querySelector(${JSON.stringify(LOADING)}) === null`),
  );
  await page.waitForLoadState('networkidle');
}

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResult {
  violations: { id: string; impact: string | null; nodes: { target: string[]; failureSummary?: string }[] }[];
}

/** What axe-core finds that is serious, by WCAG 2.2 AA and its best practices. */
export async function seriousViolations(page: Page): Promise<string[]> {
  await page.evaluate(await axe);
  const { violations } = await page.evaluate(() =>
    (globalThis as unknown as { axe: { run(): Promise<AxeResult> } }).axe.run(),
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')} ${failureSummary ?? ''}`),
    );
}

/** Waits until the page is no wider than the window. @throws Error if it stays wider */
export async function fitsWindow(page: Page): Promise<void> {
  await eventually(
    () => page.evaluate<boolean>('document.documentElement.scrollWidth <= window.innerWidth'),
    10_000,
  );
}
