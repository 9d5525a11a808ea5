import type { Json } from './dialects.js';
import type { Span } from '../bytes.js';
import { type ObjectCursor, openObject, parseText, parseValue } from '../json-cursor.js';
import { normaliseUsage } from './normalise-usage.js';
import { readReportedCost } from './reported-cost.js';
import type { ResponseUsage } from './token-usage.js';
import type { ListedCounts } from './listed/listed-counts.js';
import { reportedSearches, toolCalls } from './listed/tool-calls.js';

/** The members of a response that report the model and the usage. */
const NAMES = [
  'model',
  // Gemini.
  'modelVersion',
  'usage',
  // Gemini.
  'usageMetadata',
  // Groq's streams: `usage` in it.
  'x_groq',
  // Cohere v1.
  'meta',
  // The end of a stream of Bedrock's InvokeModel.
  'amazon-bedrock-invocationMetrics',
  // Ollama.
  'prompt_eval_count',
  'eval_count',
  // Titan on Bedrock.
  'inputTextTokenCount',
  'totalOutputTextTokenCount',
  // Mistral OCR.
  'usage_info',
  // OpenAI responses: the tools that were run.
  'tool_usage',
  'output',
  // OpenAI and Groq; Bedrock.
  'service_tier',
  'serviceTier',
] as const;
type Name = (typeof NAMES)[number];

/** The names of all members. */
export const USAGE_MEMBERS: readonly string[] = NAMES;

const TEXTS = new Set<Name>(['model', 'modelVersion', 'service_tier']);
const NUMBERS = new Set<Name>([
  'prompt_eval_count',
  'eval_count',
  'inputTextTokenCount',
  'totalOutputTextTokenCount',
]);

/** The names at the index of their length: most members are none of them, and their length tells. */
const BY_LENGTH: Name[][] = [];
for (const name of NAMES) (BY_LENGTH[name.length] ??= []).push(name);

/**
 * The members of one document that report the model and the usage. Of a repeated name the last value of the right type is
 * used. The values are parsed once, at the end: one for each name at most, however often it is repeated.
 */
export class UsageMembers {
  private readonly spans: { [Found in Name]?: Span } = {};

  constructor(private readonly json: Buffer) {}

  /** Takes the member the cursor is on, if it is one of those. */
  add(cursor: ObjectCursor): void {
    for (const name of BY_LENGTH[cursor.keyLength] ?? NONE) {
      if (!cursor.isKey(name)) continue;
      const span = TEXTS.has(name)
        ? cursor.textSpan()
        : NUMBERS.has(name)
          ? cursor.numberSpan()
          : name === 'output'
            ? cursor.arraySpan()
            : cursor.objectSpan();
      if (span !== null) this.spans[name] = span;
    }
  }

  /** Takes an object's own members. */
  addAll(cursor: ObjectCursor): void {
    while (cursor.next()) this.add(cursor);
  }

  get model(): string | null {
    const { model, modelVersion } = this.spans;
    return parseText(this.json, model ?? modelVersion ?? null);
  }

  /**
   * The usage that the document reports.
   *
   * @param started usage reported earlier, of which this document repeats only what changed
   * @returns null if it reports none
   */
  read(endpoint: string, started: Json | null = null): ResponseUsage | null {
    const { json, spans } = this;
    return (
      this.readObject(spans.usage, endpoint, started) ??
      this.readObject(spans.usageMetadata, endpoint, started) ??
      this.readObject(spans.meta, endpoint, started) ??
      this.readObject(spans.usage_info, endpoint, started) ??
      this.readObject(spans['amazon-bedrock-invocationMetrics'], endpoint, started) ??
      this.readObject(spans.x_groq && memberSpan(json, spans.x_groq, 'usage'), endpoint, started) ??
      this.readCounts(endpoint)
    );
  }

  /** The usage object of the document as the provider sent it. */
  rawUsage(): Json | null {
    return parseObject(this.json, this.spans.usage);
  }

  private readObject(
    span: Span | null | undefined,
    endpoint: string,
    started: Json | null,
  ): ResponseUsage | null {
    const usage = parseObject(this.json, span);
    if (usage === null) return null;
    let read = normaliseUsage(usage, endpoint, this.tier);
    if (read === null) return null;
    if (started !== null) read = normaliseUsage(merge(started, usage), endpoint, this.tier)!;
    read.reportedCost = readReportedCost(this.json, span!, usage);
    const calls = toolCalls(this.json, this.spans.output);
    const searches = reportedSearches(this.json, this.spans.tool_usage);
    if (searches !== null) calls.web_searches = searches === 0 ? undefined : searches;
    return addCounts(read, calls);
  }

  /** Counts at the top of the document. */
  private readCounts(endpoint: string): ResponseUsage | null {
    const usage: Record<string, unknown> = {};
    for (const name of NUMBERS) usage[name] = parseValue(this.json, this.spans[name] ?? null);
    return normaliseUsage(usage, endpoint);
  }

  private get tier(): unknown {
    const { service_tier: text, serviceTier: object } = this.spans;
    // No tier that counts has an escape in its name.
    if (text !== undefined) return this.json.toString('latin1', text[0] + 1, text[1] - 1);
    return object && parseValue(this.json, object);
  }
}

/** Adds counts that the usage leaves out; those that it reports stay. @param usage changed */
export function addCounts(usage: ResponseUsage, counts: ListedCounts): ResponseUsage {
  for (const [name, count] of Object.entries(counts) as [keyof ListedCounts, number | undefined][])
    if (count !== undefined) usage.extra = { [name]: count, ...usage.extra };
  return usage;
}

const NONE: readonly Name[] = [];

function parseObject(json: Buffer, span: Span | null | undefined): Json | null {
  const value = parseValue(json, span ?? null);
  return typeof value === 'object' && value !== null ? (value as Json) : null;
}

/** Where an object is that is a member of another one. */
function memberSpan(json: Buffer, outer: Span, name: string): Span | null {
  let found: Span | null = null;
  const cursor = openObject(json, outer[0]);
  while (cursor?.next()) if (cursor.isKey(name)) found = cursor.objectSpan() ?? found;
  return found;
}

/** Members of the later one win, unless they are null. Not by assignment, for which `__proto__` is no member. */
function merge(earlier: Json, later: Json): Json {
  const known = Object.entries(later).filter(([, value]) => value !== null);
  return { ...earlier, ...Object.fromEntries(known) };
}
