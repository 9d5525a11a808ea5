import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { pages, ROOT } from './pages.js';

const DIST = join(ROOT, 'site/dist');
const SOURCE = 'https://source.example/postern';
const BASE = '/docs/';

beforeAll(() => {
  const env = { ...process.env, DOCS_BASE: BASE, DOCS_SOURCE: SOURCE };
  execFileSync(process.execPath, ['scripts/docs-site.mjs'], { cwd: ROOT, env, stdio: 'pipe' });
});

const read = (path: string) => readFileSync(join(DIST, path), 'utf8');
const decoded = (text: string) =>
  text.replaceAll('&amp;', '&').replaceAll('&#39;', "'").replaceAll('&quot;', '"');
const html = () =>
  (readdirSync(DIST, { recursive: true }) as string[]).filter((path) => path.endsWith('.html'));

/** Every address that a page names, with the page. */
function* links(): Generator<{ page: string; link: string }> {
  for (const page of html())
    for (const [, link] of read(page).matchAll(/\s(?:href|src)="([^"]+)"/g))
      yield { page, link: decoded(link!) };
}

const ids = new Map<string, Set<string>>();
function has(page: string, id: string): boolean {
  if (!ids.has(page))
    ids.set(page, new Set([...read(page).matchAll(/\sid="([^"]+)"/g)].map(([, one]) => decoded(one!))));
  return ids.get(page)!.has(id);
}

/** On the site that is served below BASE. */
function isDead(page: string, link: string): boolean {
  const [path, anchor] = link.split('#').map(decodeURIComponent) as [string, string | undefined];
  if (path.startsWith('/') && !path.startsWith(BASE)) return true;
  const named = path.startsWith('/') ? path.slice(BASE.length) : posix.join(posix.dirname(page), path);
  const file = path === '' ? page : named === '' || named.endsWith('/') ? `${named}index.html` : named;
  if (!existsSync(join(DIST, file))) return true;
  return anchor !== undefined && file.endsWith('.html') && !has(file, anchor);
}

it('no link of the site is dead, nor an anchor that one names', () => {
  const own = [...links()].filter(({ link }) => !/^[a-z]+:/.test(link));
  expect(own.length).toBeGreaterThan(5_000);
  expect(own.filter(({ page, link }) => isDead(page, link))).toEqual([]);
});

it('links to the source name files that are there', () => {
  const sources = [...links()].filter(({ link }) => link.startsWith(SOURCE));
  expect(sources.length).toBeGreaterThan(100);
  const missing = sources.filter(({ link }) => !existsSync(join(ROOT, link.slice(SOURCE.length))));
  expect(missing).toEqual([]);
});

it('has every page of the documentation, as HTML and as Markdown, and names it in llms.txt', () => {
  const all = pages('docs').map((page) =>
    page === 'docs/README.md' ? 'index.md' : page.slice('docs/'.length),
  );
  expect(all.length).toBeGreaterThan(50);
  expect(all.filter((page) => !existsSync(join(DIST, page)))).toEqual([]);
  expect(all.filter((page) => !existsSync(join(DIST, page.replace(/md$/, 'html'))))).toEqual([]);
  const named = [...read('llms.txt').matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, path]) => path!);
  expect(named.filter((path) => !existsSync(join(DIST, path)))).toEqual([]);
  expect(named).toEqual(
    expect.arrayContaining(['guides/limits.md', 'reference/errors.md', 'develop/modules.md']),
  );
});

it('its search finds words of the pages', () => {
  const [index] = (readdirSync(join(DIST, 'assets'), { recursive: true }) as string[]).filter((path) =>
    path.includes('localSearchIndex'),
  );
  expect(read(join('assets', index!))).toContain('guides/limits.html');
});
