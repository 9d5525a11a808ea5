import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Page } from 'playwright-core';
import { settled } from './browser.js';

const IMAGES = resolve(__dirname, '../../docs/images');
/** `POSTERN_WRITE_DOCS=1` writes the screenshots of the docs. */
export const WRITES_IMAGES = process.env.POSTERN_WRITE_DOCS === '1';

/** Writes the screenshot of a page that the docs show, if they are to be written. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!WRITES_IMAGES) return;
  mkdirSync(IMAGES, { recursive: true });
  // Nothing is shown because the mouse is over it.
  await page.mouse.move(0, 0);
  await settled(page);
  await page.screenshot({ path: join(IMAGES, `console-${name}.png`) });
}
