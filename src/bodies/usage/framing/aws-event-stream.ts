import { crc32 } from 'node:zlib';
import type { Span } from '../../bytes.js';
import type { LastEvents, StreamFraming } from './stream-events.js';

/** Two lengths and their CRC-32. */
const PRELUDE_BYTES = 12;
/** The prelude, and the CRC-32 of the message. */
const LEAST_BYTES = PRELUDE_BYTES + 4;
/** Checksums computed to find the start of a message: some 0.2 µs each. */
const MAX_CHECKS = 4_096;

/**
 * Amazon's binary event stream (`application/vnd.amazon.eventstream`): messages of a prelude, headers, a payload and a
 * CRC-32, all numbers big-endian. Bedrock's payloads are JSON; InvokeModel puts the model's own JSON in base64 into `bytes`.
 */
export const AWS_EVENT_STREAM: StreamFraming = {
  events: payloads,
  lastEvents: (bytes): LastEvents => ({ events: payloads(bytes), broken: null }),
};

/** The JSON of each whole message, from the first one that starts in these bytes. */
function payloads(bytes: Buffer): string[] {
  const found: string[] = [];
  let checks = 0;
  let lastHeaders: Span = [0, 0];
  for (let at = 0; at + LEAST_BYTES <= bytes.length && checks < MAX_CHECKS;) {
    const length = bytes.readUInt32BE(at);
    const headers = bytes.readUInt32BE(at + 4);
    const fits = length >= LEAST_BYTES && headers <= length - LEAST_BYTES && length <= bytes.length - at;
    if (!fits || (checks++, crc32(bytes.subarray(at, at + 8)) !== bytes.readUInt32BE(at + 8))) {
      at++;
      continue;
    }
    lastHeaders = [at + PRELUDE_BYTES, at + PRELUDE_BYTES + headers];
    found.push(documentOf(bytes.toString('utf8', at + PRELUDE_BYTES + headers, at + length - 4)));
    at += length;
  }
  const exception = exceptionOf(bytes.toString('latin1', ...lastHeaders));
  if (exception !== null) found.push(JSON.stringify({ error: { type: exception } }));
  return found;
}

/** A text header (type 7) with its length. */
const EXCEPTION = /:exception-type\x07\x00([^])([^]*)/;

/** The name of the exception that ended the stream; its payload has only a message. */
function exceptionOf(headers: string): string | null {
  const [, length, rest] = EXCEPTION.exec(headers) ?? [];
  return length === undefined ? null : rest!.slice(0, length.charCodeAt(0));
}

const BASE64 = /^\{"bytes":"([\w+/]*=*)"/;

function documentOf(payload: string): string {
  const [, bytes] = BASE64.exec(payload) ?? [];
  return bytes === undefined ? payload : Buffer.from(bytes, 'base64').toString('utf8');
}
