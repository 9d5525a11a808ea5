import { setImmediate } from 'node:timers/promises';
import type { AnswerCopy, KeptAnswer } from './answer-copy.js';
import { isStreamed } from './event-stream.js';
import { inflate, isEncoded } from './inflate.js';
import { readJsonUsage } from './json-usage.js';
import { readStreamUsage } from './stream-usage.js';
import { NO_USAGE, type Usage } from './token-figures.js';

/**
 * Endpoints whose answers tell what this very call used. Others may show a `usage` too, of something else:
 * `GET /v1/responses/{id}` that of the call that made the response, a batch or a run that of many.
 * By the last segment, so that Azure OpenAI, Vertex AI and providers with a path of their own are read alike.
 */
const TELLS_USAGE =
  /\/(?:completions|responses(?:\/compact)?|embeddings|messages|rerank|images\/(?:generations|edits|variations)|audio\/(?:speech|transcriptions|translations))$|:(?:generateContent|streamGenerateContent|rawPredict|streamRawPredict)$/;

/** An answer up to this size is read at once, some µs; a larger one lets the event loop turn first. */
const SMALL_ANSWER = 16_384;

export interface FinishedAnswer {
  /** The answer's `Content-Type`. */
  contentType: string | null | undefined;
  /** The answer's `Content-Encoding`. */
  contentEncoding: string | null | undefined;
  /** Raw path after `/p/<provider>`, without the query. */
  endpoint: string;
  /** Its bytes; they are taken from it at once. */
  copy: AnswerCopy;
}

/**
 * The provider's own token figures, read from the copy of an answer that has ended. Never throws and never guesses: what
 * is not said, out of range or not certain is null.
 */
export async function readUsage(answer: FinishedAnswer): Promise<Usage> {
  const { contentType, contentEncoding, endpoint } = answer;
  const kept = answer.copy.take();
  const streamed = isStreamed(contentType);
  if (kept.head.length === 0 || !TELLS_USAGE.test(endpoint)) return { ...NO_USAGE };
  if (!streamed && !isJson(contentType)) return { ...NO_USAGE };
  const read = (body: KeptAnswer): Usage =>
    streamed ? readStreamUsage(body, endpoint) : readJsonUsage(body);
  try {
    const encoded = isEncoded(contentEncoding);
    if (encoded || kept.head.length > SMALL_ANSWER) await setImmediate();
    if (!encoded) return read(kept);
    const plain = inflate(kept.head, kept.whole, contentEncoding);
    if (plain === null) return { ...NO_USAGE };
    const usage = read({ head: plain.bytes, tail: Buffer.alloc(0), whole: plain.whole });
    return plain.whole ? usage : { ...NO_USAGE, model: usage.model };
  } catch {
    // Nothing above is known to throw; if it does, a row without figures is better than no row.
    return { ...NO_USAGE };
  }
}

function isJson(contentType: string | null | undefined): boolean {
  return typeof contentType === 'string' && /^\s*application\/(?:[^;]*\+)?json\s*(;|$)/i.test(contentType);
}
