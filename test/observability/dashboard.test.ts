import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Scrape } from './scrape.js';

interface Dashboard {
  panels: { type: string; title: string; targets?: { expr: string }[] }[];
  templating: { list: { query: string | { query: string } }[] };
}

const root = join(__dirname, '../..');
const dashboard = JSON.parse(readFileSync(join(root, 'deploy/grafana/postern.json'), 'utf8')) as Dashboard;
const queries = [
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.templating.list.map(({ query }) => (typeof query === 'string' ? query : query.query)),
];

let provider: RawProvider;
let postern: TestGateway;
let seen: Scrape;
beforeAll(async () => {
  provider = await RawProvider.start(async ({ body, socket }) => {
    await body;
    socket.write(answer('200 OK', [], 'ok'));
  });
  postern = await startTestGateway({ PROVIDER_URL: provider.url });
  await fetch(`${postern.url}/v1/models`, { headers: { authorization: `Bearer ${postern.key}` } });
  seen = await eventually(async () => {
    const scrape = await Scrape.of(postern.url);
    return scrape.sum('postern_calls_total') === 1 && scrape;
  });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

/** Names of series, with the suffixes of a histogram's. */
const names = () => new Set([...seen.series.keys()].map((series) => series.split('{')[0]!));

it('asks for series that /metrics has, by labels that they have', () => {
  expect(queries.length).toBeGreaterThan(25);
  for (const query of queries) {
    const used = [...query.matchAll(/\b((?:postern|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
    if (query !== 'prometheus') expect(used).not.toEqual([]);
    for (const [, name, filter = ''] of used) {
      expect(names()).toContain(name);
      const labels = [...filter.matchAll(/(\w+)\s*[!=]/g), ...query.matchAll(/\bby \((\w+)\)/g)];
      const own = labels.map(([, label]) => label!).filter((label) => !['job', 'instance'].includes(label));
      const series = [...seen.series.keys()].find((one) => one.startsWith(`${name}{`)) ?? '';
      for (const label of own) expect([name, series]).toEqual([name, expect.stringContaining(`${label}="`)]);
    }
  }
});

it('shows every metric of the gateway', () => {
  const own = [...seen.types.keys()].filter((name) => name.startsWith('postern_'));
  expect(own.filter((name) => !queries.some((query) => query.includes(name)))).toEqual([]);
});
