import * as zlib from 'node:zlib';

const MOST_BYTES = 1_048_576;
/** Deflate makes at most 1,032 bytes of one, so that this much of a body cannot pass the limit. */
const SURE_BYTES = Math.floor(MOST_BYTES / 1_032);
/** Each coding costs up to a full inflation; nobody sends more than one. */
const MOST_CODINGS = 3;

const { constants } = zlib;
const LIMIT = { maxOutputLength: MOST_BYTES };
/** With these flushes an input that was cut off gives what it held instead of an error. */
const ZLIB = { ...LIMIT, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { ...LIMIT, finishFlush: constants.BROTLI_OPERATION_FLUSH };

type Decoder = (body: Buffer) => Buffer;

/** From Node 22.15; the types in use are those of the oldest Node we run on. */
const { zstdDecompressSync } = zlib as { zstdDecompressSync?: (body: Buffer, options: object) => Buffer };
const zstdFlush = (constants as { ZSTD_e_flush?: number }).ZSTD_e_flush;

/** By the names of RFC 9110 8.4.1 and the IANA registry of content codings. */
const DECODERS: Record<string, Decoder | undefined> = {
  // No `constructor` and the like: the name comes from outside.
  __proto__: null as never,
  gzip: (body) => zlib.gunzipSync(body, ZLIB),
  'x-gzip': (body) => zlib.gunzipSync(body, ZLIB),
  // RFC 9110 8.4.1.2 means zlib's format and notes that some send the bare one.
  deflate: (body) => (hasZlibHead(body) ? zlib.inflateSync(body, ZLIB) : zlib.inflateRawSync(body, ZLIB)),
  br: (body) => zlib.brotliDecompressSync(body, BROTLI),
  zstd:
    zstdDecompressSync &&
    ((body) => zstdDecompressSync(body, { ...LIMIT, finishFlush: zstdFlush as number })),
};

/** Are these bytes encoded at all? */
export function isEncoded(contentEncoding: string | null | undefined): boolean {
  return codings(contentEncoding).length > 0;
}

/**
 * Takes the content codings off a copy of a body, at most 1 MiB each. In this thread, because it is bounded to some
 * milliseconds and a usual answer takes 5 µs, against 50 to 90 µs of CPU through zlib's thread pool (measured).
 *
 * @returns the plain bytes; only the first few and not `whole` when the body was not whole or is too large; null when
 * the coding is unknown or the bytes are not in it
 */
export function inflate(
  body: Buffer,
  whole: boolean,
  contentEncoding: string | null | undefined,
): { bytes: Buffer; whole: boolean } | null {
  const names = codings(contentEncoding);
  if (names.length > MOST_CODINGS) return null;
  const decoders = names.reverse().map((name) => DECODERS[name]);
  const bytes = whole ? decode(body, decoders) : null;
  if (bytes !== null) return { bytes, whole };
  const beginning = decode(body.subarray(0, SURE_BYTES), decoders);
  return beginning && { bytes: beginning, whole: false };
}

function decode(body: Buffer, decoders: readonly (Decoder | undefined)[]): Buffer | null {
  try {
    // An unknown coding throws like a broken one.
    return decoders.reduce((bytes, decoder) => decoder!(bytes), body);
  } catch {
    return null;
  }
}

function codings(contentEncoding: string | null | undefined): string[] {
  if (contentEncoding === null || contentEncoding === undefined) return [];
  return contentEncoding
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
}

/** RFC 1950 2.2: method 8, and the first two bytes as a number are a multiple of 31. */
function hasZlibHead(body: Buffer): boolean {
  return body.length > 1 && (body[0]! & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
}
