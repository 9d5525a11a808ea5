import { readFileSync } from 'node:fs';
import { findProvider, type ModelInfo, type Provider } from '@pydantic/genai-prices';

/** The catalog lists no providers, so their ids are read from its source. */
export function catalogProviders(): Provider[] {
  const source = readFileSync(new URL(import.meta.resolve('@pydantic/genai-prices')), 'utf8');
  const ids = [...source.matchAll(/^ {4}id: "([^"]+)",$/gm)].map(([, id]) => id!);
  return ids.flatMap((providerId) => findProvider({ providerId }) ?? []);
}

export function catalogModels(): { provider: Provider; model: ModelInfo }[] {
  return catalogProviders().flatMap((provider) => provider.models.map((model) => ({ provider, model })));
}
