import { firstHeader } from '../../platform/raw-headers.js';
import { PlainCopy, type CopiedBody } from './plain-copy.js';
import { CompressedCopy } from './compressed-copy.js';
import { decoderFor } from './content-coding.js';
import { inSlices } from './event-loop-slices.js';
import { readJsonUsage } from './json-usage.js';
import { readJsonError } from './provider-error.js';
import { normaliseUsage } from './normalise-usage.js';
import type { StreamFraming } from './framing/stream-events.js';
import { framingOf } from './framing/stream-framing.js';
import { counterFor } from './listed/listed-counter.js';
import { withListed } from './listed/with-listed.js';
import { readStreamUsage } from './stream-usage.js';
import { objectWithin } from '../jobs/batch-results.js';
import { JOB_ENDPOINT, readJob } from '../jobs/seen-job.js';
import { NO_USAGE, type ResponseUsage, type SeenJob, type TokenUsage } from './token-usage.js';

/**
 * Endpoints whose responses report the usage of this call. In others, `usage` means something else:
 * `GET /v1/responses/{id}` reports that of the call that created the response, a batch or a run that of many.
 * By the last segment, so that Azure OpenAI, Vertex AI and providers with a path of their own are read alike.
 */
const REPORTS_USAGE = new RegExp(
  `/(?:${[
    // OpenAI, and those with the same paths; Voyage has two more kinds of embeddings.
    'completions|responses(?:/compact)?|(?:multimodal|contextualized)?embeddings|rerank|ocr',
    'images/(?:generations|edits|variations)|audio/(?:speech|transcriptions|translations)',
    // Anthropic; Cohere, Writer and Ollama; Gemini Interactions.
    'messages|chat|generate|embed|interactions',
    // Bedrock.
    'model/[^/]+/(?:converse(?:-stream)?|invoke(?:-with-response-stream)?)',
    // Gemini and Vertex AI.
  ].join(
    '|',
  )})$|:(?:(?:stream)?(?:G|g)enerateContent|rawPredict|streamRawPredict|embedContent|batchEmbedContents)$`,
);

/** A response up to this size is read at once, some µs; a larger one in a later tick of the event loop. */
const SMALL_RESPONSE = 16_384;

/** Copy of a response, taken while it passes. */
export type ResponseCopy = PlainCopy | CompressedCopy;

type Reader = (kept: CopiedBody, endpoint: string) => ResponseUsage;

/**
 * Creates the copy of a response that readUsage() reads.
 *
 * @param contentType the response's `Content-Type`
 * @param contentEncoding the response's `Content-Encoding`
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @param isFailed the response is an error, which is read on any endpoint
 * @returns null if nothing is read: the endpoint, the type or the coding is not supported
 */
export function copyFor(
  contentType: string | null | undefined,
  contentEncoding: string | null | undefined,
  endpoint: string,
  isFailed = false,
): ResponseCopy | null {
  if (!(isFailed || REPORTS_USAGE.test(endpoint)) || readerFor(contentType) === null) return null;
  const decoder = decoderFor(contentEncoding);
  if (decoder === null) return null;
  const counter = isFailed ? null : counterFor(contentType, endpoint);
  return decoder === undefined ? new PlainCopy(counter) : new CompressedCopy(decoder, counter);
}

/**
 * The same for a response that may describe a job, whose usage is not that of the call.
 *
 * @returns null also for other endpoints
 */
export function copyForJob(
  contentType: string | null | undefined,
  contentEncoding: string | null | undefined,
  endpoint: string,
): ResponseCopy | null {
  return isJson(contentType) && JOB_ENDPOINT.test(endpoint)
    ? copyFor(contentType, contentEncoding, endpoint, true)
    : null;
}

/** Reads the job from a copy of copyForJob(), as readUsage() reads the usage. */
export function readJobResponse(
  contentType: string | null | undefined,
  endpoint: string,
  copy: ResponseCopy | null,
): ResponseUsage | Promise<ResponseUsage> {
  return readBody(contentType, endpoint, copy, false, readJobOnly);
}

/**
 * Reads the job from the first event of a stream that goes on: a background response.
 *
 * @returns null if that has not arrived, or describes none
 */
export function readStreamedJob(
  contentType: string | null | undefined,
  endpoint: string,
  { start }: PlainCopy,
): SeenJob | null {
  const framing = framingOf(contentType);
  return framing && jobOfStart(start, endpoint, framing);
}

/**
 * Reads the provider's token counts, or its error, from the copy of a response that has ended. Never throws and never
 * estimates: a count that is not reported, out of range or not certain is null.
 *
 * @param contentType the response's `Content-Type`
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @param copy from copyFor(); no byte may be added to it any more
 * @param head from usageOfHead(), used if the body reports no counts
 * @param isFailed as for copyFor()
 * @returns a promise for large and compressed responses
 */
export function readUsage(
  contentType: string | null | undefined,
  endpoint: string,
  copy: ResponseCopy | null,
  head: TokenUsage | null = null,
  isFailed = false,
): ResponseUsage | Promise<ResponseUsage> {
  const body = readBody(contentType, endpoint, copy, isFailed);
  if (head === null) return body;
  return body instanceof Promise ? body.then((usage) => orOfHead(usage, head)) : orOfHead(body, head);
}

function orOfHead(body: ResponseUsage, head: TokenUsage): ResponseUsage {
  return (body.promptTokens ?? body.completionTokens) === null
    ? { ...head, model: body.model, closing: 'end' }
    : body;
}

function readBody(
  contentType: string | null | undefined,
  endpoint: string,
  copy: ResponseCopy | null,
  isFailed: boolean,
  plainReader = isFailed && isJson(contentType) ? readFailure : readerFor(contentType),
): ResponseUsage | Promise<ResponseUsage> {
  if (plainReader === null || copy === null || copy.length === 0) return NO_USAGE;
  const counter = copy.overflow;
  const reader: Reader =
    counter === null ? plainReader : (kept, path) => withListed(plainReader(kept, path), kept, counter, path);
  if (copy instanceof CompressedCopy) return readCompressed(copy, reader, endpoint);
  const kept = copy.take();
  if (copy.length > SMALL_RESPONSE) return inSlices(() => read(kept, reader, endpoint));
  return read(kept, reader, endpoint);
}

async function readCompressed(
  copy: CompressedCopy,
  reader: Reader,
  endpoint: string,
): Promise<ResponseUsage> {
  try {
    const small = await inSlices(() => {
      const kept = copy.inflateSync();
      return kept && read(kept, reader, endpoint);
    });
    if (small !== null) return small;
    const { kept, complete } = await copy.inflate();
    const usage = await inSlices(() => read(kept, reader, endpoint));
    return complete ? usage : { ...NO_USAGE, model: usage.model };
  } catch {
    return NO_USAGE;
  }
}

/** Bedrock's headers with the counts of InvokeModel, by the names that its streams have for them. */
const BEDROCK_HEADERS = [
  ['inputTokenCount', 'x-amzn-bedrock-input-token-count'],
  ['outputTokenCount', 'x-amzn-bedrock-output-token-count'],
  ['cacheReadInputTokenCount', 'x-amzn-bedrock-cache-read-input-token-count'],
  ['cacheWriteInputTokenCount', 'x-amzn-bedrock-cache-write-input-token-count'],
] as const;

/**
 * The usage in the head of a response, for models of Bedrock whose body reports none.
 *
 * @param headers flat raw headers
 * @param endpoint raw path after `/p/<provider>`, without the query
 */
export function usageOfHead(headers: readonly string[], endpoint: string): TokenUsage | null {
  if (!endpoint.endsWith('/invoke')) return null;
  const usage: Record<string, number> = {};
  for (const [name, header] of BEDROCK_HEADERS) {
    const value = firstHeader(headers, header);
    if (value !== undefined && /^\d+$/.test(value)) usage[name] = Number(value);
  }
  return normaliseUsage(usage, endpoint);
}

function readerFor(contentType: string | null | undefined): Reader | null {
  const framing = framingOf(contentType);
  if (framing !== null) return (kept, endpoint) => readStream(kept, endpoint, framing);
  return isJson(contentType) ? readJson : null;
}

/** A response of OpenAI's that failed has an error in place of counts, and the status 200. */
function readJson(kept: CopiedBody, endpoint: string): ResponseUsage {
  const usage = readJsonUsage(kept, endpoint);
  if (isCounted(usage)) return usage;
  const job = endpoint.endsWith('/responses') ? readJob(kept, endpoint) : null;
  if (job !== null) return { ...usage, job };
  if (!kept.whole || kept.head.length > SMALL_RESPONSE) return usage;
  const error = readJsonError(kept, false);
  // A response that failed has used nothing that it reports.
  return error === null ? usage : { ...usage, error, closing: 'event' };
}

function isCounted({ promptTokens, completionTokens }: ResponseUsage): boolean {
  return (promptTokens ?? completionTokens) !== null;
}

/** A background response may go on after its stream. */
function readStream(kept: CopiedBody, endpoint: string, framing: StreamFraming): ResponseUsage {
  const usage = readStreamUsage(kept, endpoint, framing);
  const job = isCounted(usage) ? null : jobOfStart(kept.head, endpoint, framing);
  return job === null ? usage : { ...usage, job };
}

/** The first event of a background response has it as it was created. */
function jobOfStart(start: Buffer, endpoint: string, framing: StreamFraming): SeenJob | null {
  if (!endpoint.endsWith('/responses')) return null;
  const [created] = framing.events(start) ?? [];
  const head = created === undefined ? null : objectWithin(Buffer.from(created), ['response']);
  return head && readJob({ head, tail: head.subarray(0, 0), whole: true }, endpoint);
}

function readJobOnly(kept: CopiedBody, endpoint: string): ResponseUsage {
  const job = readJob(kept, endpoint);
  return job === null ? NO_USAGE : { ...NO_USAGE, job };
}

/** A response whose status says that it is an error. */
function readFailure(kept: CopiedBody, endpoint: string): ResponseUsage {
  const usage = REPORTS_USAGE.test(endpoint) ? readJsonUsage(kept, endpoint) : NO_USAGE;
  const error = readJsonError(kept, true);
  return error === null ? usage : { ...usage, error };
}

function read(kept: CopiedBody, reader: Reader, endpoint: string): ResponseUsage {
  try {
    return reader(kept, endpoint);
  } catch {
    // Nothing above is known to throw; if it does, a row without counts is better than no row.
    return NO_USAGE;
  }
}

function isJson(contentType: string | null | undefined): boolean {
  return typeof contentType === 'string' && /^\s*application\/(?:[^;]*\+)?json\s*(;|$)/i.test(contentType);
}
