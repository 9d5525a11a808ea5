import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';

/** Bytes of output per job of zlib's thread pool: each job takes less than a millisecond. */
const CHUNK_BYTES = 65_536;

/** Inflates the bodies of one content coding. A truncated body gives the data before the end, not an error. */
export interface Decoder {
  /** Memory in bytes that a stream takes beyond its buffers, as its output grows. */
  readonly window: number;
  /** @throws for bytes that are not in this coding, and for more than `mostBytes` of output */
  inflate(body: Buffer, mostBytes: number): Buffer;
  /** @param start the first bytes of the body */
  stream(start: Buffer): Transform;
}

type ZstdOptions = { finishFlush: number; chunkSize?: number; maxOutputLength?: number; params: object };

/** From Node 22.15; the types in use are those of the oldest Node we run on. */
const { zstdDecompressSync, createZstdDecompress } = zlib as {
  zstdDecompressSync?: (body: Buffer, options: ZstdOptions) => Buffer;
  createZstdDecompress?: (options: ZstdOptions) => Transform;
};

const { constants } = zlib;
const { ZSTD_e_flush, ZSTD_d_windowLogMax } = constants as unknown as Record<string, number>;
const ZLIB = { finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { finishFlush: constants.BROTLI_OPERATION_FLUSH };
/** RFC 9659: a body with this content coding needs a window of 8 MiB at most. */
const ZSTD: ZstdOptions = { finishFlush: ZSTD_e_flush!, params: { [ZSTD_d_windowLogMax!]: 23 } };

const GZIP: Decoder = {
  window: 0,
  inflate: (body, maxOutputLength) => zlib.gunzipSync(body, { ...ZLIB, maxOutputLength }),
  stream: () => zlib.createGunzip({ ...ZLIB, chunkSize: CHUNK_BYTES }),
};

/** RFC 9110 8.4.1.2 means zlib's format and notes that some send the bare one. */
const DEFLATE: Decoder = {
  window: 0,
  inflate(body, maxOutputLength) {
    const options = { ...ZLIB, maxOutputLength };
    return hasZlibHead(body) ? zlib.inflateSync(body, options) : zlib.inflateRawSync(body, options);
  },
  stream(start) {
    const options = { ...ZLIB, chunkSize: CHUNK_BYTES };
    return hasZlibHead(start) ? zlib.createInflate(options) : zlib.createInflateRaw(options);
  },
};

const BR: Decoder = {
  window: 16_777_216,
  inflate: (body, maxOutputLength) => zlib.brotliDecompressSync(body, { ...BROTLI, maxOutputLength }),
  stream: () => zlib.createBrotliDecompress({ ...BROTLI, chunkSize: CHUNK_BYTES }),
};

/** By the names of RFC 9110 8.4.1 and the IANA registry of content codings. */
const DECODERS = new Map<string, Decoder>([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', DEFLATE],
  ['br', BR],
]);
if (zstdDecompressSync !== undefined && createZstdDecompress !== undefined) {
  DECODERS.set('zstd', {
    window: 8_388_608,
    inflate: (body, maxOutputLength) => zstdDecompressSync(body, { ...ZSTD, maxOutputLength }),
    stream: () => createZstdDecompress({ ...ZSTD, chunkSize: CHUNK_BYTES }),
  });
}

/**
 * The decoder for a `Content-Encoding`.
 *
 * @returns undefined when the body is not encoded; null when the coding is unknown or there are several: no provider
 * sends more than one, and each would cost a full inflation
 */
export function decoderFor(contentEncoding: string | null | undefined): Decoder | null | undefined {
  if (contentEncoding === null || contentEncoding === undefined) return undefined;
  const names = contentEncoding
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'identity');
  if (names.length === 0) return undefined;
  return names.length === 1 ? (DECODERS.get(names[0]!) ?? null) : null;
}

/** RFC 1950 2.2: method 8, and the first two bytes as a number are a multiple of 31. */
function hasZlibHead(body: Buffer): boolean {
  return body.length > 1 && (body[0]! & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
}
