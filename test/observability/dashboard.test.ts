import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { Scrape } from './scrape.js';

interface Dashboard {
  panels: {
    type: string;
    title: string;
    description?: string;
    gridPos: { x: number; y: number; w: number; h: number };
    targets?: { expr: string }[];
  }[];
  templating: { list: { name: string; query: string | { query: string } }[] };
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
    // Costs are counted when the row is written.
    return scrape.sum('postern_log_rows_persisted_total') === 1 && scrape;
  });
});
afterAll(async () => {
  await postern.stop();
  await provider.stop();
});

/** Names of series, with the suffixes of a histogram's; and of metrics that have no series before their first value. */
const names = () =>
  new Set([
    ...[...seen.series.keys()].map((series) => series.split('{')[0]!),
    ...[...seen.types].flatMap(([name, type]) => (type === 'histogram' ? [name, `${name}_bucket`] : [name])),
  ]);

/** Series that come only with a call that has a cost or lacks one, with a route, or with a sink. */
const LATER: Record<string, string> = {
  postern_tokens_issued_total: '{grant="exchange",result="issued"}',
  postern_identity_keys_age_seconds: '{issuer="https://login.example.com"}',
  postern_policy_decisions_total: '{policy="dlp",decision="allowed",from="receiver"}',
  postern_policy_failures_total: '{policy="dlp",reason="timeout"}',
  postern_policy_duration_seconds_bucket: '{policy="dlp",le="0.1"}',
  postern_policy_calls: '{policy="dlp",state="waiting"}',
  postern_cost_usd_total: 'postern_cost_usd_total{provider="',
  postern_saved_usd_total: 'postern_saved_usd_total{provider="',
  postern_route_target_resting: 'postern_route_target_resting{route="",provider="',
  postern_unpriced_calls_total: 'postern_unpriced_calls_total{provider="',
  postern_unknown_calls_total: 'postern_unknown_calls_total{provider="',
  postern_sink_rows_total: 'postern_sink_rows_total{sink="',
  postern_sink_failures_total: 'postern_sink_failures_total{sink="',
  postern_sink_lag_seconds: 'postern_sink_lag_seconds{sink="',
};

it('asks for series that /metrics has, by labels that they have', () => {
  expect(queries.length).toBeGreaterThan(25);
  for (const query of queries) {
    const used = [...query.matchAll(/\b((?:postern|process|nodejs)_\w+)(?:\{([^}]*)\})?/g)];
    if (query !== 'prometheus') expect(used).not.toEqual([]);
    for (const [, name, filter = ''] of used) {
      expect(names()).toContain(name);
      const labels = [...filter.matchAll(/(\w+)\s*[!=]/g), ...query.matchAll(/\bby \((\w+)\)/g)];
      const own = labels.map(([, label]) => label!).filter((label) => !['job', 'instance'].includes(label));
      const series = [...seen.series.keys()].find((one) => one.startsWith(`${name}{`)) ?? LATER[name!] ?? '';
      for (const label of own) expect([name, series]).toEqual([name, expect.stringContaining(`${label}="`)]);
    }
  }
});

it('shows every metric of the gateway', () => {
  const own = [...seen.types.keys()].filter((name) => name.startsWith('postern_'));
  expect(own.filter((name) => !queries.some((query) => query.includes(name)))).toEqual([]);
});

it('describes every panel, has tiles, and filters by provider wherever there is that label', () => {
  const panels = dashboard.panels.filter(({ type }) => type !== 'row');
  expect(panels.filter(({ description }) => !description).map(({ title }) => title)).toEqual([]);
  expect(panels.filter(({ type }) => type === 'stat').length).toBeGreaterThanOrEqual(6);
  expect(dashboard.templating.list.map(({ name }) => name)).toEqual([
    'datasource',
    'job',
    'instance',
    'provider',
  ]);
  for (const { targets = [] } of panels)
    for (const { expr } of targets)
      for (const [, name, filter] of expr.matchAll(/\b((?:postern|process|nodejs)_\w+)\{([^}]*)\}/g)) {
        const [series = LATER[name!] ?? ''] = [...seen.series.keys()].filter((one) =>
          one.startsWith(`${name}{`),
        );
        expect([expr, filter!.includes('provider=~"$provider"')]).toEqual([
          expr,
          series.includes('provider="'),
        ]);
      }
});

it('has panels that do not lie on each other', () => {
  const taken = new Set<string>();
  for (const { title, gridPos } of dashboard.panels)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect([title, x < 24, taken.has(`${x},${y}`)]).toEqual([title, true, false]);
        taken.add(`${x},${y}`);
      }
});

describe('the alert rules', () => {
  interface Rule {
    alert: string;
    expr: string;
    labels: { severity: string };
    annotations: { summary: string; description: string };
  }
  const { groups } = parse(readFileSync(join(root, 'deploy/prometheus/postern.rules.yml'), 'utf8')) as {
    groups: { name: string; rules: Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);

  it('ask for series that /metrics has, by labels and values that they have', () => {
    expect(rules.length).toBeGreaterThan(10);
    for (const { alert, expr } of rules) {
      const used = [...expr.matchAll(/\b((?:postern|nodejs|process)_\w+|up)(?:\{([^}]*)\})?/g)];
      expect([alert, used.length > 0]).toEqual([alert, true]);
      for (const [, name, filter = ''] of used) {
        if (name === 'up') continue;
        expect(names()).toContain(name);
        const series = [...seen.series.keys()].filter((one) => one.startsWith(`${name}{`));
        if (series.length === 0 && LATER[name!] !== undefined) series.push(LATER[name!]!);
        for (const [, label] of filter.matchAll(/(\w+)\s*=/g))
          if (label !== 'job')
            expect([name, series[0]]).toEqual([name, expect.stringContaining(`${label}="`)]);
        for (const label of [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(', ')))
          if (label !== 'job')
            expect([name, series[0]]).toEqual([name, expect.stringContaining(`${label}="`)]);
        // Every code is there from the start, at 0, so that the first error counts as an increase.
        for (const [, values] of filter.matchAll(/code=~?"([^"]*)"/g))
          for (const code of values!.split('|')) expect(series.join()).toContain(`code="${code}"`);
      }
    }
  });

  it('have a name of their own, a severity, and a text that says what to do', () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations } of rules) {
      expect([alert, ['warning', 'critical'].includes(labels.severity)]).toEqual([alert, true]);
      expect([alert, annotations.summary, annotations.description]).toEqual([
        alert,
        expect.stringMatching(/\w/) as string,
        expect.stringMatching(/\w/) as string,
      ]);
    }
  });
});
