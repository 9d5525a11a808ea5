import { crc32 } from 'node:zlib';
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
  for (let at = 0; at + LEAST_BYTES <= bytes.length && checks < MAX_CHECKS;) {
    const length = bytes.readUInt32BE(at);
    const headers = bytes.readUInt32BE(at + 4);
    const fits = length >= LEAST_BYTES && headers <= length - LEAST_BYTES && length <= bytes.length - at;
    if (!fits || (checks++, crc32(bytes.subarray(at, at + 8)) !== bytes.readUInt32BE(at + 8))) {
      at++;
      continue;
    }
    found.push(documentOf(bytes.toString('utf8', at + PRELUDE_BYTES + headers, at + length - 4)));
    at += length;
  }
  return found;
}

const BASE64 = /^\{"bytes":"([\w+/]*=*)"/;

function documentOf(payload: string): string {
  const [, bytes] = BASE64.exec(payload) ?? [];
  return bytes === undefined ? payload : Buffer.from(bytes, 'base64').toString('utf8');
}
