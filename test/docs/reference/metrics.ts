import { code } from './markdown.js';

/** A metric as prom-client registers it. */
export interface RegisteredMetric {
  name: string;
  help: string;
  type: string;
  labelNames: readonly string[];
}

/** Every metric of the gateway's own: name, labels, type and help. */
export function metricsReference(metrics: readonly RegisteredMetric[]): string {
  return metrics
    .filter(({ name }) => name.startsWith('postern_'))
    .map(({ name, help, type, labelNames }) => {
      const shown = labelNames.length > 0 ? `{${labelNames.join(', ')}}` : '';
      return `- ${code(name + shown)} (${type}): ${help}`;
    })
    .join('\n');
}
