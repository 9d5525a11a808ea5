import { queryOptions } from '@tanstack/react-query';
import { api, type ResponseOf } from '../../api/client';

export type Route = ResponseOf<'/admin/v1/routes/{name}', 'get'>;
export type RetryCause = Route['retry_on'][number];

/** Targets rest for seconds only. */
const REFRESH_MS = 10_000;

export const routesQuery = queryOptions({
  queryKey: ['routes'],
  queryFn: ({ signal }) => api.get('/admin/v1/routes', { signal }),
  refetchInterval: REFRESH_MS,
});

export const STRATEGIES: Readonly<Record<Route['strategy'], string>> = {
  order: 'The first target that takes calls',
  spread: 'Each session, else each key, has a target of its own',
};

export const RETRY_CAUSES: Readonly<Record<RetryCause, string>> = {
  connect: 'No connection was made',
  refused: 'The target responds with 429, 503 or 529',
  failed: 'It responds with 500, 502 or 504, or not at all: it may have run the call, and bill it',
};

export const DIALECTS: Readonly<Record<Route['dialect'], string>> = {
  any: 'Any',
  openai: 'OpenAI',
  anthropic: 'Anthropic',
};

/** A target as it is typed. */
export interface TargetDraft {
  /** Tells it from the others while they move. */
  id: number;
  provider: string;
  /** A line for each model: `sent name = name at the provider`. */
  models: string;
}

/** What its names of models are in text. */
export function modelsText(models: Record<string, string> | null): string {
  return Object.entries(models ?? {})
    .map(([sent, own]) => `${sent} = ${own}`)
    .join('\n');
}

/** The first line that names no two models; undefined if there is none. */
export function badLine(text: string): string | undefined {
  return linesOf(text).find((line) => pairOf(line) === undefined);
}

/** @returns null if there are none */
export function modelsOf(text: string): Record<string, string> | null {
  const pairs = linesOf(text).flatMap((line) => [pairOf(line) ?? ['', '']]);
  return pairs.length === 0 ? null : Object.fromEntries(pairs);
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function pairOf(line: string): [string, string] | undefined {
  const [, sent, own] = /^([^=]+)=([^=]+)$/.exec(line) ?? [];
  const names = [sent?.trim() ?? '', own?.trim() ?? ''] as [string, string];
  return names[0] === '' || names[1] === '' ? undefined : names;
}
