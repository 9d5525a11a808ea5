import { crc32 } from 'node:zlib';
import type { BeginColumns, EndColumns, UsageColumns } from './log-row.js';

/**
 * What is journalled of a call: its beginning before it is forwarded, its end before the last byte of the answer is
 * written, and what was read from the answer afterwards. Every field is already in its column's domain.
 */
export type JournalRecord =
  | ({ t: 'B' } & BeginColumns)
  | ({ t: 'E'; id: string } & EndColumns)
  | ({ t: 'U'; id: string } & UsageColumns);

const VERSION = 'v1';
const NEWLINE = 0x0a;
/** `v1 ` + 8 hex digits + a space. */
const HEADER_LENGTH = 12;
export const LONGEST_LINE = 16_384;

/** One line: version, CRC-32 of the JSON, the JSON. JSON never holds a newline, so a line is found by its end. */
export function encodeLine(record: JournalRecord): Buffer {
  const json = JSON.stringify(record);
  return Buffer.from(`${VERSION} ${crc32(json).toString(16).padStart(8, '0')} ${json}\n`);
}

export interface DecodedLines {
  records: JournalRecord[];
  /** Lines that are torn or damaged; each is one record at most. */
  corrupt: number;
  /** Bytes at the end that no newline closes yet. */
  rest: Buffer;
}

/** Reads lines out of bytes of a journal file; never throws, whatever the bytes are. */
export function decodeLines(bytes: Buffer): DecodedLines {
  const records: JournalRecord[] = [];
  let corrupt = 0;
  let from = 0;
  for (;;) {
    const to = bytes.indexOf(NEWLINE, from);
    if (to === -1) break;
    const record = decodeLine(bytes.subarray(from, to));
    if (record !== null) records.push(record);
    else corrupt++;
    from = to + 1;
  }
  return { records, corrupt, rest: bytes.subarray(from) };
}

function decodeLine(line: Buffer): JournalRecord | null {
  if (line.length <= HEADER_LENGTH || line.length > LONGEST_LINE) return null;
  const json = line.subarray(HEADER_LENGTH);
  const header = `${VERSION} ${crc32(json).toString(16).padStart(8, '0')} `;
  if (line.toString('latin1', 0, HEADER_LENGTH) !== header) return null;
  try {
    return JSON.parse(json.toString()) as JournalRecord;
  } catch {
    // A checksum that fits by chance over bytes that are no JSON: one in four thousand million damaged lines.
    return null;
  }
}
