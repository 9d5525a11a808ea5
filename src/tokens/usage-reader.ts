import { PlainCopy, type KeptAnswer } from './plain-copy.js';
import { CompressedCopy } from './compressed-copy.js';
import { decoderFor } from './content-coding.js';
import { inSlices } from './event-loop-slices.js';
import { isStreamed } from './event-stream.js';
import { readJsonUsage } from './json-usage.js';
import { readStreamUsage } from './stream-usage.js';
import { NO_USAGE, type Usage } from './token-counts.js';

/**
 * Endpoints whose answers tell what this very call used. Others may show a `usage` too, of something else:
 * `GET /v1/responses/{id}` that of the call that made the response, a batch or a run that of many.
 * By the last segment, so that Azure OpenAI, Vertex AI and providers with a path of their own are read alike.
 */
const TELLS_USAGE =
  /\/(?:completions|responses(?:\/compact)?|embeddings|messages|rerank|images\/(?:generations|edits|variations)|audio\/(?:speech|transcriptions|translations))$|:(?:generateContent|streamGenerateContent|rawPredict|streamRawPredict)$/;

/** A response up to this size is read at once, some µs; a larger one in a later turn of the event loop. */
const SMALL_RESPONSE = 16_384;

/** What is kept of a response while it passes. */
export type ResponseCopy = PlainCopy | CompressedCopy;

type Reader = (kept: KeptAnswer, endpoint: string) => Usage;

/**
 * A copy to keep a response in, for readUsage().
 *
 * @param contentType the response's `Content-Type`
 * @param contentEncoding the response's `Content-Encoding`
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @returns null where nothing is read: the endpoint, the type or the coding is none of those known here
 */
export function copyFor(
  contentType: string | null | undefined,
  contentEncoding: string | null | undefined,
  endpoint: string,
): ResponseCopy | null {
  if (!TELLS_USAGE.test(endpoint) || readerFor(contentType) === null) return null;
  const decoder = decoderFor(contentEncoding);
  if (decoder === undefined) return new PlainCopy();
  return decoder === null ? null : new CompressedCopy(decoder);
}

/**
 * The provider's own token counts, read from the copy of a response that has ended. Never throws and never estimates:
 * what is not reported, out of range or not certain is null.
 *
 * @param contentType the response's `Content-Type`
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @param copy from copyFor(); no byte may be added to it any more
 * @returns a promise where reading takes its time
 */
export function readUsage(
  contentType: string | null | undefined,
  endpoint: string,
  copy: ResponseCopy | null,
): Usage | Promise<Usage> {
  const reader = readerFor(contentType);
  if (reader === null || copy === null || copy.length === 0) return NO_USAGE;
  if (copy instanceof CompressedCopy) return readCompressed(copy, reader, endpoint);
  const kept = copy.take();
  if (copy.length > SMALL_RESPONSE) return inSlices(() => read(kept, reader, endpoint));
  return read(kept, reader, endpoint);
}

async function readCompressed(copy: CompressedCopy, reader: Reader, endpoint: string): Promise<Usage> {
  try {
    const small = await inSlices(() => {
      const kept = copy.inflateAtOnce();
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

function readerFor(contentType: string | null | undefined): Reader | null {
  if (isStreamed(contentType)) return readStreamUsage;
  return isJson(contentType) ? readJsonUsage : null;
}

function read(kept: KeptAnswer, reader: Reader, endpoint: string): Usage {
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
