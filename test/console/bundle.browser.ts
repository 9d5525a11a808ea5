import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildConsole } from './build-console.js';

const dist = resolve(__dirname, '../../console/dist');

beforeAll(buildConsole);

/** The script and what it imports, at once and from the start. */
function withImports(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  const source = readFileSync(join(dist, 'assets', file), 'utf8');
  for (const [, name] of source.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g))
    withImports(name!, found);
  return found;
}

function kilobytes(files: Iterable<string>): number {
  const sizes = [...files].map((file) => {
    const path = join(dist, 'assets', file);
    const gz = `${path}.gz`;
    return statSync(statSync(gz, { throwIfNoEntry: false }) === undefined ? path : gz).size;
  });
  return sizes.reduce((sum, size) => sum + size, 0) / 1_000;
}

it('loads at most 250 kB to show the overview, and at most 130 kB more for its charts', () => {
  const html = readFileSync(join(dist, 'index.html'), 'utf8');
  const linked = [...html.matchAll(/\/console\/assets\/([\w.-]+)"/g)].map(([, name]) => name!);
  const overview = readdirSync(join(dist, 'assets')).filter((name) => /^page-overview-.*\.js$/.test(name));
  const scripts = new Set(
    [...linked.filter((name) => name.endsWith('.js')), ...overview].flatMap((name) => [...withImports(name)]),
  );
  const first = kilobytes([...scripts, ...linked.filter((name) => name.endsWith('.css'))]);
  const chart = readdirSync(join(dist, 'assets')).filter((name) => /^stacked-bars-.*\.(js|css)$/.test(name));
  const more = new Set(chart.flatMap((name) => (name.endsWith('.js') ? [...withImports(name)] : [name])));
  const charts = kilobytes([...more].filter((name) => !scripts.has(name)));
  process.stdout.write(
    `Console: ${first.toFixed(0)} kB at first, ${charts.toFixed(0)} kB more for charts (gzip)\n`,
  );
  expect([chart.length, overview.length]).toEqual([2, 1]);
  expect(first).toBeLessThan(250);
  expect(charts).toBeLessThan(130);
});

it('loads nothing from elsewhere, and runs no inline script', () => {
  const html = readFileSync(join(dist, 'index.html'), 'utf8');
  const addresses = [...html.matchAll(/\b(?:src|href)="([^"]*)"/g)].map(([, address]) => address);
  expect(addresses.filter((address) => !address!.startsWith('/console/'))).toEqual([]);
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)/);
});

it('has the styles of every component of Mantine that is in its scripts', () => {
  const assets = readdirSync(join(dist, 'assets'));
  const classesIn = (text: string) => new Set(text.match(/\bm_[0-9a-f]{6,8}\b/g));
  const read = (end: string) =>
    assets
      .filter((name) => name.endsWith(end))
      .map((name) => readFileSync(join(dist, 'assets', name), 'utf8'))
      .join('\n');
  const all = classesIn(
    readFileSync(resolve(__dirname, '../../console/node_modules/@mantine/core/styles.css'), 'utf8'),
  );
  const styled = classesIn(read('.css'));
  const used = [...classesIn(read('.js'))].filter((name) => all.has(name));
  expect(used.length).toBeGreaterThan(100);
  expect(used.filter((name) => !styled.has(name))).toEqual([]);
});
