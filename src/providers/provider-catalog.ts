/** Hosts of providers, with the price list (the ID of the provider in the price catalog) that applies to each. */
const CATALOGS: readonly (readonly [host: RegExp, catalog: string])[] = [
  [/^api\.openai\.com$/, 'openai'],
  [/^api\.anthropic\.com$/, 'anthropic'],
  [/(^|\.)googleapis\.com$/, 'google'],
  [/\.(openai|cognitiveservices|services\.ai)\.azure\.com$|\.azure-api\.net$/, 'azure'],
  [/^bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com$/, 'aws'],
  [/^api\.mistral\.ai$/, 'mistral'],
  [/^api\.groq\.com$/, 'groq'],
  [/^(api\.)?openrouter\.ai$/, 'openrouter'],
  [/^api\.together\.(ai|xyz)$/, 'together'],
  [/^api\.deepseek\.com$/, 'deepseek'],
  [/^api\.x\.ai$/, 'x-ai'],
  [/^api\.cohere\.(ai|com)$/, 'cohere'],
  [/^api\.perplexity\.ai$/, 'perplexity'],
  [/^api\.fireworks\.ai$/, 'fireworks'],
  [/^api\.cerebras\.ai$/, 'cerebras'],
  [/^api\.moonshot\.(ai|cn)$/, 'moonshotai'],
  [/^api\.minimaxi?\.(com|io)$/, 'minimax'],
  [/^api\.novita\.ai$/, 'novita'],
  [/^api\.voyageai\.com$/, 'voyageai'],
  [/^api\.z\.ai$/, 'zai'],
  [/^open\.bigmodel\.cn$/, 'zhipuai'],
  [/^oai\.endpoints\.kepler\.ai\.cloud\.ovh\.net$/, 'ovhcloud'],
];

/** The price list for the provider at this URL; null for one that has none, such as a self-hosted one. */
export function catalogOf(url: string): string | null {
  const host = URL.canParse(url) ? new URL(url).hostname : '';
  return CATALOGS.find(([pattern]) => pattern.test(host))?.[1] ?? null;
}

/**
 * Price lists whose providers report what a call cost, in USD, in its usage. Others may mean another currency, credits, or
 * a price that the customer does not pay.
 */
const REPORTS_COST: ReadonlySet<string | null> = new Set(['openrouter', 'x-ai', 'perplexity']);

export function reportsCost(catalog: string | null): boolean {
  return REPORTS_COST.has(catalog);
}
