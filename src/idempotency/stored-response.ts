/** A response as it is stored for duplicate requests. */
export interface StoredResponse {
  status: number;
  reason: string;
  /** Flat raw headers: those that describe the body, the target of a redirect, and the provider's request ID. */
  headers: string[];
  /** SHA-256 of the request body: a duplicate request must have the same. */
  fingerprint: Buffer;
  body: Buffer;
}

/** Statuses that a retry may change: they concern the time of the request, not its content. */
const TRANSIENT_STATUSES = new Set([401, 402, 403, 408, 409, 429]);
const STORED_HEADER = /^(?:content-.+|location|(?:x-)?request-id)$/i;

export function isStorable(status: number): boolean {
  return status < 500 && !TRANSIENT_STATUSES.has(status);
}

/** The headers of a response that are stored with it. @param headers flat raw headers */
export function storedHeaders(headers: readonly string[]): string[] {
  const stored: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (STORED_HEADER.test(headers[i]!)) stored.push(headers[i]!, headers[i + 1]!);
  }
  return stored;
}

/** `length of the head (4) | head as JSON | body` */
export function encodeResponse({ body, fingerprint, ...head }: StoredResponse): Buffer {
  const json = JSON.stringify({ ...head, fingerprint: fingerprint.toString('hex') });
  const length = Buffer.byteLength(json);
  const bytes = Buffer.allocUnsafe(4 + length + body.length);
  bytes.writeUInt32BE(length);
  bytes.write(json, 4);
  bytes.set(body, 4 + length);
  return bytes;
}

/** @param bytes made by encodeResponse */
export function decodeResponse(bytes: Buffer): StoredResponse {
  const bodyAt = 4 + bytes.readUInt32BE();
  const head = JSON.parse(bytes.toString('utf8', 4, bodyAt)) as Omit<StoredResponse, 'fingerprint'> & {
    fingerprint: string;
  };
  return { ...head, fingerprint: Buffer.from(head.fingerprint, 'hex'), body: bytes.subarray(bodyAt) };
}
