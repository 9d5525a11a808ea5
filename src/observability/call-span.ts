import type { FinishedCall } from '../request-log/finished-calls.js';

/** Values of `gen_ai.operation.name` by the end of a path (OpenTelemetry, GenAI semantic conventions). */
const OPERATIONS: readonly (readonly [RegExp, string])[] = [
  [/\/(?:chat\/completions|messages|responses)$/, 'chat'],
  [/\/completions$/, 'text_completion'],
  [/\/embeddings$/, 'embeddings'],
  [/:(?:streamG|g)enerateContent$/, 'generate_content'],
];

/** Values of `gen_ai.provider.name` by host; for other hosts it is the name of the provider in Postern. */
const PROVIDERS: readonly (readonly [RegExp, string])[] = [
  [/^api\.openai\.com$/, 'openai'],
  [/^api\.anthropic\.com$/, 'anthropic'],
  [/\.openai\.azure\.com$/, 'azure.ai.openai'],
  [/^generativelanguage\.googleapis\.com$/, 'gcp.gemini'],
  [/^api\.groq\.com$/, 'groq'],
  [/^api\.mistral\.ai$/, 'mistral_ai'],
  [/^api\.deepseek\.com$/, 'deepseek'],
  [/^api\.x\.ai$/, 'x_ai'],
];

/** W3C Trace Context 3.2: later versions may append fields, ids are never all zeros. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

/** The parent span of a call. */
export interface ParentSpan {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

/** The span data of a call. */
export interface CallSpan {
  name: string;
  attributes: Record<string, string | number>;
  failed: boolean;
}

/** @returns null without a well-formed `traceparent` */
export function parentOf({ traceparent }: FinishedCall): ParentSpan | null {
  const [, version, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || (version === '00' && traceparent!.length !== 55)) return null;
  return { traceId, spanId: spanId!, traceFlags: parseInt(flags!, 16) & 1 };
}

/** The attributes of a call by the GenAI semantic conventions, without unknown ones. */
export function callSpan({ row, requestModel, responseModel, upstream }: FinishedCall): CallSpan {
  const { hostname, port, protocol } = new URL(upstream);
  const operation = first(OPERATIONS, row.path ?? '');
  // Without a response of the provider the status is the gateway's own.
  const status = row.ttfb_ms === null ? null : row.status;
  const errorType =
    row.error_code ??
    (row.outcome !== 'completed' ? row.outcome : status !== null && status >= 400 ? String(status) : null);
  return {
    name: operation === null ? row.method : [operation, requestModel].filter(Boolean).join(' '),
    attributes: known({
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': first(PROVIDERS, hostname) ?? row.provider,
      'gen_ai.request.model': requestModel,
      'gen_ai.response.model': responseModel,
      'gen_ai.usage.input_tokens': row.prompt_tokens,
      'gen_ai.usage.output_tokens': row.completion_tokens,
      'server.address': hostname,
      'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
      'http.request.method': row.method,
      'http.response.status_code': status,
      'error.type': errorType,
      'postern.request_id': row.id,
      'postern.outcome': row.outcome,
      'postern.provider': row.provider,
      'postern.team_id': row.team_id,
      'postern.key_id': row.key_id,
    }),
    failed: errorType !== null,
  };
}

function first(rules: readonly (readonly [RegExp, string])[], text: string): string | null {
  return rules.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}

function known(values: Record<string, string | number | null>): Record<string, string | number> {
  return Object.fromEntries(
    Object.entries(values).filter((entry): entry is [string, string | number] => entry[1] !== null),
  );
}
