import type { Page } from 'playwright-core';
import { fitsWindow, inColours, seriousViolations, settled } from '../browser.js';

const WIDE = { width: 1280, height: 860 };
const NARROW = { width: 320, height: 860 };
/** Where the pictures go that somebody looks at; none if it is not set. */
const PICTURES = process.env.POSTERN_PICTURES;

/** The rules about colours, which are the same in a window of any width. */
export const OF_COLOURS = ['color-contrast', 'link-in-text-block'];

/**
 * @param name of the pictures of it, if there are to be some
 * @throws AssertionError for what axe finds serious, in both colour schemes and in a narrow window, or if that is too narrow
 */
export async function checkAppearance(page: Page, name?: string): Promise<void> {
  const shot = async (detail: string) =>
    PICTURES && name && void (await page.screenshot({ path: `${PICTURES}/${name}-${detail}.png` }));
  await settled(page);
  await fitsWindow(page);
  expect(await seriousViolations(page)).toEqual([]);
  await shot('light-1280');
  // The rest is the same in the dark.
  await inColours(page, 'dark');
  expect(await seriousViolations(page, { rules: OF_COLOURS })).toEqual([]);
  await shot('dark-1280');
  await inColours(page, 'light');
  await page.setViewportSize(NARROW);
  await settled(page);
  await fitsWindow(page);
  expect(await seriousViolations(page, { without: OF_COLOURS })).toEqual([]);
  await shot('light-320');
  await page.setViewportSize(WIDE);
}
