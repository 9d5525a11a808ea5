import { Injectable } from '@nestjs/common';
import { DurationMetric } from '../observability/durations.js';
import { MetricsService } from '../observability/metrics.service.js';
import { UrlPolicy } from './decision/url-policy.js';
import { PolicyDirectory } from './policy-directory.service.js';
import { PolicyHealth } from './policy-health.service.js';

@Injectable()
export class PolicyMetrics {
  constructor(
    { counts }: PolicyHealth,
    policy: UrlPolicy,
    directory: PolicyDirectory,
    { instruments }: MetricsService,
  ) {
    instruments.counter(
      'postern_policy_decisions_total',
      'Decisions of policies by URL: of the receiver, or of the cache.',
      () =>
        [...counts].flatMap(([name, { decisions }]) =>
          [...decisions].map(([which, count]) => {
            const [decision, from] = which.split(' ') as [string, string];
            return [{ policy: name, decision, from }, count] as const;
          }),
        ),
      'policy',
      'decision',
      'from',
    );
    instruments.counter(
      'postern_policy_failures_total',
      'Calls that a policy by URL has not decided about, by reason; overloaded: it was not asked.',
      () =>
        [...counts].flatMap(([name, { failures }]) =>
          [...failures].map(([reason, count]) => [{ policy: name, reason }, count] as const),
        ),
      'policy',
      'reason',
    );
    instruments.histogram(
      new DurationMetric(
        'postern_policy_duration_seconds',
        'How long receivers of policies took, failures included.',
        ['policy'],
        () => [...counts].map(([name, { durations }]) => [{ policy: name }, durations] as const),
      ),
    );
    instruments.gauge(
      'postern_policy_calls',
      'Calls that a policy by URL is asked about, and calls that wait for that.',
      () => {
        const names = new Map(directory.all?.map(({ id, name }) => [id, name]));
        return [...policy.load()].flatMap(([id, asking, waiting]) => {
          const name = names.get(id);
          if (name === undefined) return [];
          return [
            [{ policy: name, state: 'asking' }, asking] as const,
            [{ policy: name, state: 'waiting' }, waiting] as const,
          ];
        });
      },
      'policy',
      'state',
    );
  }
}
