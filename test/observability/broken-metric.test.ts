import { Injectable, Logger, Module } from '@nestjs/common';
import { MetricsService } from '../../src/observability/metrics.service.js';
import { ObservabilityModule } from '../../src/observability/observability.module.js';
import { addToApp } from '../support/app-modules.js';
import { ADMIN_TOKEN, startTestGateway } from '../support/gateway.js';

@Injectable()
class TeamMetrics {
  constructor({ instruments }: MetricsService) {
    let readings = 0;
    const broken = () => {
      if (readings++ < 2) return 7;
      throw new Error('no figure');
    };
    const used = new Map([['search', 5]]);
    const tokens = () => [...used].map(([team, count]) => [{ team }, count] as const);
    instruments.gauge('team_broken', 'Cannot be read.', broken);
    instruments.counter('team_broken_total', 'Cannot be read.', broken);
    instruments.gauge('team_tokens', 'Tokens of a team.', tokens, 'team');
  }
}

@Module({ imports: [ObservabilityModule], providers: [TeamMetrics] })
class TeamMetricsModule {}

it('a metric of a module that cannot be read keeps its last value, and the others are scraped', async () => {
  addToApp(TeamMetricsModule);
  const postern = await startTestGateway();
  const lines: string[] = [];
  const keep = (message: unknown) => void lines.push(String(message));
  Logger.overrideLogger({ log: () => {}, warn: () => {}, error: keep });
  const scrape = () =>
    fetch(`${postern.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
  await scrape();
  await scrape();
  const response = await scrape();
  expect(response.status).toBe(200);
  const text = (await response.text()).split('\n');
  expect(text).toContain('team_tokens{team="search"} 5');
  expect(text).toContain('postern_open_calls 0');
  expect(text.filter((line) => line.startsWith('team_broken'))).toEqual([
    'team_broken 7',
    'team_broken_total 7',
  ]);
  expect(lines).toEqual(
    ['team_broken', 'team_broken_total'].map(
      (name) => `The metric ${name} cannot be read (logged once a minute): Error: no figure`,
    ),
  );
  await postern.stop();
});
