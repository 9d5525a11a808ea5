/** An answer as it is kept for repeats of its call. */
export interface StoredAnswer {
  status: number;
  reason: string;
  /** Flat raw headers: what describes the body, where a redirect leads, and the provider's own id of the call. */
  headers: string[];
  /** SHA-256 of the request's body: a repeat must have the same. */
  fingerprint: Buffer;
  body: Buffer;
}

/** What a repeat may get another answer to: not what was said of the call, but of the moment it came. */
const PASSING = new Set([401, 402, 403, 408, 409, 429]);
const KEPT_HEADER = /^(?:content-.+|location|(?:x-)?request-id)$/i;

export function isKept(status: number): boolean {
  return status < 500 && !PASSING.has(status);
}

/** The headers of an answer that a repeat gets as well. @param headers flat raw headers */
export function keptHeaders(headers: readonly string[]): string[] {
  const kept: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (KEPT_HEADER.test(headers[i]!)) kept.push(headers[i]!, headers[i + 1]!);
  }
  return kept;
}

/** `length of the head (4) | head as JSON | body` */
export function encodeAnswer({ body, fingerprint, ...head }: StoredAnswer): Buffer {
  const json = Buffer.from(JSON.stringify({ ...head, fingerprint: fingerprint.toString('hex') }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json, body]);
}

/** @param bytes made by encodeAnswer */
export function decodeAnswer(bytes: Buffer): StoredAnswer {
  const bodyAt = 4 + bytes.readUInt32BE();
  const head = JSON.parse(bytes.toString('utf8', 4, bodyAt)) as Omit<StoredAnswer, 'fingerprint'> & {
    fingerprint: string;
  };
  return { ...head, fingerprint: Buffer.from(head.fingerprint, 'hex'), body: bytes.subarray(bodyAt) };
}
