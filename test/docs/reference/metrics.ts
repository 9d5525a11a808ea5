import type { Scrape } from '../../observability/scrape.js';
import { code } from './markdown.js';

/** Every metric of the gateway's own, from a scrape: name, labels, type and help. */
export function metricsReference(scrape: Scrape): string {
  const helps = new Map(
    [...scrape.text.matchAll(/^# HELP (postern_\S+) (.*)$/gm)].map(([, name, help]) => [name!, help!]),
  );
  const names = [...scrape.types.keys()].filter((name) => name.startsWith('postern_'));
  return names
    .map((name) => {
      const labels = labelsOf(name, scrape);
      const shown = labels.length > 0 ? `{${labels.join(', ')}}` : '';
      return `- ${code(name + shown)} (${scrape.types.get(name)}): ${helps.get(name)}`;
    })
    .join('\n');
}

function labelsOf(name: string, { series }: Scrape): string[] {
  const one = [...series.keys()].find(
    (key) => key.startsWith(`${name}{`) || key.startsWith(`${name}_count{`),
  );
  const labels = [...(one ?? '').matchAll(/(\w+)="/g)].map(([, label]) => label!);
  return labels.filter((label) => label !== 'le');
}
