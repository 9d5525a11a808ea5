import type { Page } from 'playwright-core';

/** What somebody may not see whole: the page is wider than the window, or text ends at the edge of a box or beyond its card. */
const CUT = `(() => {
  const found = new Set();
  const root = document.documentElement;
  // Without the scrollbar.
  const width = root.offsetWidth;
  if (root.scrollWidth > root.clientWidth)
    found.add('the page is ' + root.scrollWidth + ' px wide in a window of ' + root.clientWidth);
  if (document.body.offsetWidth > width)
    found.add('the body is ' + document.body.offsetWidth + ' px wide in a page of ' + width);
  const nameOf = (element) => {
    const cell = element.closest('td, th, dd, li, section, [role="dialog"]') ?? element;
    return cell.tagName.toLowerCase() + (cell.dataset?.label ? ' ' + cell.dataset.label : '') + ' < '
      + (cell.closest('[aria-label], [aria-labelledby]')?.ariaLabel ?? element.className);
  };
  const endsInEllipsis = (style) => style.textOverflow === 'ellipsis' || style.webkitLineClamp !== 'none';
  const layers = document.querySelectorAll('[role="dialog"]');
  const top = layers[layers.length - 1] ?? document.body;
  const texts = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (texts.nextNode()) {
    const node = texts.currentNode;
    const text = node.textContent.trim();
    const parent = node.parentElement;
    if (text === '' || parent === null || parent.closest('[aria-hidden="true"], script, style') !== null) continue;
    if (getComputedStyle(parent).visibility === 'hidden') continue;
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter(({ width, height }) => width > 0 && height > 0);
    if (rects.length === 0) continue;
    const left = Math.min(...rects.map((rect) => rect.left));
    const right = Math.max(...rects.map((rect) => rect.right));
    const bottom = Math.max(...rects.map((rect) => rect.bottom));
    let isWhole = true;
    for (let box = parent; box !== null && box !== root; box = box.parentElement) {
      const style = getComputedStyle(box);
      // For screen readers, and the link that shows itself when it has the focus.
      if ((box instanceof HTMLElement && box.offsetWidth <= 1) || box.matches('a[href="#main"]')) { isWhole = false; break; }
      if (style.display === 'inline') continue;
      const area = box.getBoundingClientRect();
      if (style.overflowX !== 'visible' && (left < area.left - 1 || right > area.right + 1)) {
        isWhole = false;
        // A region that the keyboard can scroll, or one that shows how much there is by an ellipsis.
        const scrolls = /auto|scroll/.test(style.overflowX) && box.tabIndex === 0;
        if (!endsInEllipsis(style) && !scrolls) found.add(JSON.stringify(text.slice(0, 60)) + ' is cut in ' + nameOf(parent));
        break;
      }
      if (style.overflowY === 'hidden' && bottom > area.bottom + 2 && !endsInEllipsis(style)) {
        found.add(JSON.stringify(text.slice(0, 60)) + ' is cut below in ' + nameOf(parent));
        isWhole = false;
        break;
      }
      if (style.position === 'fixed') {
        // The navigation of narrow screens, until it is opened.
        if (area.right <= 0) isWhole = false;
        break;
      }
    }
    const card = isWhole && parent.closest('section, td, th, li, [role="group"]')?.getBoundingClientRect();
    if (card && (left < card.left - 1 || right > card.right + 1))
      found.add(JSON.stringify(text.slice(0, 60)) + ' is outside its card in ' + nameOf(parent));
    if (isWhole && (left < -1 || right > width + 1))
      found.add(JSON.stringify(text.slice(0, 60)) + ' is outside the window in ' + nameOf(parent));
  }
  return [...found];
})()`;

/** What is cut or outside the window, of the layer on top. A field may cut what was typed into it. */
export function cutTexts(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(CUT);
}
