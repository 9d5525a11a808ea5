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

/**
 * The provider's own token figures, read from the copy of an answer that has ended. Never throws and never guesses: what
 * is not said, out of range or not certain is null.
 *
 * @param contentType the answer's `Content-Type`
 * @param contentEncoding the answer's `Content-Encoding`
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @param copy the answer's bytes; they are taken from it at once
 * @returns a promise where reading takes its time
 */
export function readUsage(
  contentType: string | null | undefined,
  contentEncoding: string | null | undefined,
  endpoint: string,
  copy: AnswerCopy,
): Usage | Promise<Usage> {
  const kept = copy.take();
  const streamed = isStreamed(contentType);
  if (kept.head.length === 0 || !TELLS_USAGE.test(endpoint)) return NO_USAGE;
  if (!streamed && !isJson(contentType)) return NO_USAGE;
  if (isEncoded(contentEncoding)) return readEncoded(kept, contentEncoding, streamed, endpoint);
  if (kept.head.length > SMALL_ANSWER) return readLarge(kept, streamed, endpoint);
  return readPlain(kept, streamed, endpoint);
}

async function readLarge(body: KeptAnswer, streamed: boolean, endpoint: string): Promise<Usage> {
  await setImmediate();
  return readPlain(body, streamed, endpoint);
}

function readPlain(body: KeptAnswer, streamed: boolean, endpoint: string): Usage {
  try {
    return streamed ? readStreamUsage(body, endpoint) : readJsonUsage(body);
  } catch {
    // Nothing above is known to throw; if it does, a row without figures is better than no row.
    return NO_USAGE;
  }
}

async function readEncoded(
  kept: KeptAnswer,
  contentEncoding: string | null | undefined,
  streamed: boolean,
  endpoint: string,
): Promise<Usage> {
  await setImmediate();
  try {
    const plain = inflate(kept.head, kept.whole, contentEncoding);
    if (plain === null) return NO_USAGE;
    const { bytes, whole } = plain;
    const usage = readPlain({ head: bytes, tail: Buffer.alloc(0), whole }, streamed, endpoint);
    return whole ? usage : { ...NO_USAGE, model: usage.model };
  } catch {
    return NO_USAGE;
  }
}

function isJson(contentType: string | null | undefined): boolean {
  return typeof contentType === 'string' && /^\s*application\/(?:[^;]*\+)?json\s*(;|$)/i.test(contentType);
}
