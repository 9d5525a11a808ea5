import type { Json } from './dialects.js';
import { type ObjectCursor, openObject, parseText, parseValue, type Span } from './json-cursor.js';
import { normaliseUsage } from './normalise-usage.js';
import { readReportedCost } from './reported-cost.js';
import type { TokenUsage } from './token-usage.js';

type Kind = 'text' | 'object' | 'number';

/** The members of a response that report the model and the usage. */
const MEMBERS: Readonly<Record<string, Kind>> = {
  model: 'text',
  /** Gemini. */
  modelVersion: 'text',
  usage: 'object',
  /** Gemini. */
  usageMetadata: 'object',
  /** Groq's streams: `usage` in it. */
  x_groq: 'object',
  /** Cohere v1. */
  meta: 'object',
  /** The end of a stream of Bedrock's InvokeModel. */
  'amazon-bedrock-invocationMetrics': 'object',
  /** Ollama. */
  prompt_eval_count: 'number',
  eval_count: 'number',
  /** OpenAI and Groq; Bedrock. */
  service_tier: 'text',
  serviceTier: 'object',
};

/** The names of all members. */
export const USAGE_MEMBERS: readonly string[] = Object.keys(MEMBERS);

const BY_LENGTH: string[][] = [];
for (const name of USAGE_MEMBERS) (BY_LENGTH[name.length] ??= []).push(name);

/** A usage object, and where it is in the document. */
interface Found {
  usage: Json;
  span: Span | null;
}

/**
 * The members of one document that report the model and the usage. Of a repeated name the last value of the right type is
 * used. The values are parsed once, at the end: one for each name at most, however often it is repeated.
 */
export class UsageMembers {
  private readonly spans: Record<string, Span> = {};

  constructor(private readonly json: Buffer) {}

  /** Takes the member the cursor is on, if it is one of those. */
  add(cursor: ObjectCursor): void {
    const name = cursor.keyOf(BY_LENGTH);
    if (name === undefined) return;
    const kind = MEMBERS[name];
    const span =
      kind === 'text' ? cursor.textSpan() : kind === 'object' ? cursor.objectSpan() : cursor.numberSpan();
    if (span !== null) this.spans[name] = span;
  }

  /** Takes an object's own members. */
  addAll(cursor: ObjectCursor): void {
    while (cursor.next()) this.add(cursor);
  }

  get model(): string | null {
    return this.text('model') ?? this.text('modelVersion');
  }

  /**
   * The usage that the document reports.
   *
   * @param started usage reported earlier, of which this document repeats only what changed
   * @returns null if it reports none
   */
  read(endpoint: string, started: Json | null = null): TokenUsage | null {
    const { spans } = this;
    const tier = spans.service_tier ?? spans.serviceTier;
    for (const { usage, span } of this.found()) {
      let read = normaliseUsage(usage, endpoint, tier && parseValue(this.json, tier));
      if (read === null) continue;
      if (started !== null) read = normaliseUsage(merge(started, usage), endpoint)!;
      read.reportedCost = readReportedCost(this.json, span, usage);
      return read;
    }
    return null;
  }

  /** The usage object of the document as the provider sent it. */
  rawUsage(): Json | null {
    return this.object('usage');
  }

  private *found(): Generator<Found> {
    const { spans } = this;
    for (const name of ['usageMetadata', 'usage', 'meta', 'amazon-bedrock-invocationMetrics']) {
      const usage = this.object(name);
      if (usage !== null) yield { usage, span: spans[name]! };
    }
    const groq = spans.x_groq && openObject(this.json, spans.x_groq[0]);
    while (groq?.next()) {
      const span = groq.isKey('usage') ? groq.objectSpan() : null;
      const usage = parseValue(this.json, span);
      if (isObject(usage)) yield { usage, span };
    }
    const { prompt_eval_count: prompt, eval_count: output } = spans;
    if (prompt ?? output)
      yield {
        usage: {
          prompt_eval_count: prompt && parseValue(this.json, prompt),
          eval_count: output && parseValue(this.json, output),
        },
        span: null,
      };
  }

  private object(name: string): Json | null {
    const value = parseValue(this.json, this.spans[name] ?? null);
    return isObject(value) ? value : null;
  }

  private text(name: string): string | null {
    return parseText(this.json, this.spans[name] ?? null);
  }
}

/** Members of the later one win, unless they are null. */
function merge(earlier: Json, later: Json): Json {
  const merged: Record<string, unknown> = { ...earlier };
  for (const [name, value] of Object.entries(later)) if (value !== null) merged[name] = value;
  return merged;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null;
}
