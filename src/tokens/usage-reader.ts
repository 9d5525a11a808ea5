import { PlainCopy, type CopiedBody } from './plain-copy.js';
import { CompressedCopy } from './compressed-copy.js';
import { decoderFor } from './content-coding.js';
import { inSlices } from './event-loop-slices.js';
import { isStreamed } from './event-stream.js';
import { readJsonUsage } from './json-usage.js';
import { readStreamUsage } from './stream-usage.js';
import { NO_USAGE, type Usage } from './token-counts.js';

/**
 * Endpoints whose responses report the usage of this call. In others, `usage` means something else:
 * `GET /v1/responses/{id}` reports that of the call that created the response, a batch or a run that of many.
 * By the last segment, so that Azure OpenAI, Vertex AI and providers with a path of their own are read alike.
 */
const REPORTS_USAGE =
  /\/(?:completions|responses(?:\/compact)?|embeddings|messages|rerank|images\/(?:generations|edits|variations)|audio\/(?:speech|transcriptions|translations))$|:(?:generateContent|streamGenerateContent|rawPredict|streamRawPredict)$/;

/** A response up to this size is read at once, some µs; a larger one in a later tick of the event loop. */
const SMALL_RESPONSE = 16_384;

/** Copy of a response, taken while it passes. */
export type ResponseCopy = PlainCopy | CompressedCopy;

type Reader = (kept: CopiedBody, endpoint: string) => Usage;

/**
 * Creates the copy of a response that readUsage() reads.
 *
 * @param contentType the response's `Content-Type`
 * @param contentEncoding the response's `Content-Encoding`
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @returns null if nothing is read: the endpoint, the type or the coding is not supported
 */
export function copyFor(
  contentType: string | null | undefined,
  contentEncoding: string | null | undefined,
  endpoint: string,
): ResponseCopy | null {
  if (!REPORTS_USAGE.test(endpoint) || readerFor(contentType) === null) return null;
  const decoder = decoderFor(contentEncoding);
  if (decoder === undefined) return new PlainCopy();
  return decoder === null ? null : new CompressedCopy(decoder);
}

/**
 * Reads the provider's token counts from the copy of a response that has ended. Never throws and never estimates: a
 * count that is not reported, out of range or not certain is null.
 *
 * @param contentType the response's `Content-Type`
 * @param endpoint raw path after `/p/<provider>`, without the query
 * @param copy from copyFor(); no byte may be added to it any more
 * @returns a promise for large and compressed responses
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

function readerFor(contentType: string | null | undefined): Reader | null {
  if (isStreamed(contentType)) return readStreamUsage;
  return isJson(contentType) ? readJsonUsage : null;
}

function read(kept: CopiedBody, reader: Reader, endpoint: string): Usage {
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
