import { dirname, join, normalize } from 'node:path';
import { anchors, exists, pages, read, withoutFences } from './pages.js';

/** Relative links of a page: `[text](target)` outside code. */
function links(page: string): string[] {
  const text = withoutFences(read(page)).replace(/`[^`\n]*`/g, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

function isDead(page: string, link: string): boolean {
  const [path, anchor] = link.split('#', 2) as [string, string | undefined];
  const target = path === '' ? page : normalize(join(dirname(page), path));
  if (!exists(target)) return true;
  return anchor !== undefined && target.endsWith('.md') && !anchors(read(target)).has(anchor);
}

const all = pages();

it('finds pages and links', () => {
  expect(all.length).toBeGreaterThan(30);
  expect(all.flatMap(links).length).toBeGreaterThan(100);
});

it.each(all)('%s has no dead links', (page) => {
  expect(links(page).filter((link) => isDead(page, link))).toEqual([]);
});

it('every page below docs is reached from docs/README.md, by way of other pages', () => {
  const reached = new Set<string>();
  const visit = (page: string): void => {
    if (reached.has(page)) return;
    reached.add(page);
    for (const link of links(page)) {
      const target = normalize(join(dirname(page), link.split('#', 1)[0]!));
      if (target.endsWith('.md') && exists(target)) visit(target);
    }
  };
  visit('docs/README.md');
  expect(all.filter((page) => page.startsWith('docs/') && !reached.has(page))).toEqual([]);
});
