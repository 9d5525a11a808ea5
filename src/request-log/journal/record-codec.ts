import { crc32 } from 'node:zlib';
import type { BeginColumns, EndColumns, LogRow, UsageColumns } from '../log-row.js';

/**
 * What is journalled of a call: its beginning before it is forwarded, its end before the last byte of the answer is
 * written, and what was read from the answer afterwards. A row that memory has no place for is journalled whole (R) in
 * place of the last. Every field is already in its column's domain.
 */
export type JournalRecord =
  | ({ t: 'B' } & BeginColumns)
  | ({ t: 'E'; id: string } & EndColumns)
  | ({ t: 'U'; id: string } & UsageColumns)
  | ({ t: 'R' } & LogRow);

const VERSION = 'v1';
const NEWLINE = 0x0a;
const SPACE = 0x20;
/** `v1 ` + 8 hex digits + a space. */
const HEADER_LENGTH = 12;
/** Seven texts of 1,024 characters, each of which JSON may write as `\u0001`, and the rest of a row. */
export const LONGEST_LINE = 65_536;
/** Where a record may begin inside a damaged line. */
const HEADER = /v1 [0-9a-f]{8} \{/g;
/** Bounds the work for a line that was made to look like many. */
const MOST_PIECES = 64;

/** A record's JSON in ASCII, so that a character is a byte; it never holds a newline. */
export function encodeRecord(record: JournalRecord): string {
  return inAscii(JSON.stringify(record));
}

/** The same for the beginning of a call. The three hand-written ones take a third of the time of JSON.stringify. */
export function encodeBegin(b: BeginColumns): string {
  return (
    `{"t":"B","started_at":"${b.started_at}","id":"${b.id}","team_id":"${b.team_id}","key_id":"${b.key_id}"` +
    `,"provider":${quoted(b.provider)},"method":${quoted(b.method)},"path":${quoted(b.path)}` +
    `,"idempotency_key":${quoted(b.idempotency_key)},"sdk_retry_count":${b.sdk_retry_count}` +
    `,"client_ip":${quoted(b.client_ip)},"user_agent":${quoted(b.user_agent)}}`
  );
}

/** The same for the end of a call. */
export function encodeEnd(id: string, e: EndColumns): string {
  return (
    `{"t":"E","id":"${id}","outcome":"${e.outcome}","status":${e.status},"error_code":${quoted(e.error_code)}` +
    `,"streamed":${e.streamed},"request_bytes":${e.request_bytes},"response_bytes":${e.response_bytes}` +
    `,"ttfb_ms":${e.ttfb_ms},"duration_ms":${e.duration_ms}` +
    `,"provider_request_id":${quoted(e.provider_request_id)}}`
  );
}

/** The same for what was read of an answer. */
export function encodeUsage(id: string, u: UsageColumns): string {
  return (
    `{"t":"U","id":"${id}","outcome":"${u.outcome}","error_code":${quoted(u.error_code)}` +
    `,"duration_ms":${u.duration_ms},"model":${quoted(u.model)},"prompt_tokens":${u.prompt_tokens}` +
    `,"completion_tokens":${u.completion_tokens},"cached_tokens":${u.cached_tokens}` +
    `,"reasoning_tokens":${u.reasoning_tokens}}`
  );
}

/** What JSON must not hold unescaped (RFC 8259 7), and what is not ASCII. */
const ESCAPED = /["\\\x00-\x1f\x7f-\uffff]/;
const NOT_ASCII = /[\x7f-\uffff]/g;

function quoted(text: string | null): string {
  if (text === null) return 'null';
  return ESCAPED.test(text) ? inAscii(JSON.stringify(text)) : `"${text}"`;
}

function inAscii(json: string): string {
  return json.replace(NOT_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const HEX_DIGITS = Buffer.from('0123456789abcdef');

/** The one line of a record. */
export function encodeLine(record: JournalRecord): Buffer {
  return encodeLines([encodeRecord(record)]);
}

/** Bytes that a record's line takes. */
export function lineLength(json: string): number {
  return HEADER_LENGTH + json.length + 1;
}

/**
 * Lines, one for each record: version, CRC-32 of the JSON, the JSON, a newline. Digits by hand and one buffer for all take
 * half the time of a buffer for each on Node 20.
 *
 * @param records as they were encoded above
 */
export function encodeLines(records: readonly string[]): Buffer {
  let length = 0;
  for (const json of records) length += lineLength(json);
  const lines = Buffer.allocUnsafe(length);
  let at = 0;
  for (const json of records) {
    lines.write(VERSION, at, 'latin1');
    lines[at + VERSION.length] = SPACE;
    let crc = crc32(json);
    for (let i = HEADER_LENGTH - 2; i > VERSION.length; i--) {
      lines[at + i] = HEX_DIGITS[crc & 0xf]!;
      crc >>>= 4;
    }
    lines[at + HEADER_LENGTH - 1] = SPACE;
    lines.write(json, at + HEADER_LENGTH, 'latin1');
    at += lineLength(json);
    lines[at - 1] = NEWLINE;
  }
  return lines;
}

export interface DecodedLines {
  records: JournalRecord[];
  /** Lines that are torn or damaged. */
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
    const line = bytes.subarray(from, to);
    from = to + 1;
    // One with nothing in it only showed that the file takes lines.
    if (line.length === 0) continue;
    const record = decodeLine(line);
    if (record !== null) records.push(record);
    else {
      corrupt++;
      records.push(...salvage(line));
    }
  }
  return { records, corrupt, rest: bytes.subarray(from) };
}

function decodeLine(line: Buffer): JournalRecord | null {
  if (line.length <= HEADER_LENGTH || line.length > LONGEST_LINE) return null;
  const json = line.subarray(HEADER_LENGTH);
  const header = `${VERSION} ${crc32(json).toString(16).padStart(8, '0')} `;
  if (line.toString('latin1', 0, HEADER_LENGTH) !== header) return null;
  try {
    const record = JSON.parse(json.toString()) as Partial<JournalRecord> | null;
    return isRecord(record) ? record : null;
  } catch {
    // A checksum that fits by chance over bytes that are no JSON: one in four thousand million damaged lines.
    return null;
  }
}

function isRecord(value: Partial<JournalRecord> | null): value is JournalRecord {
  return typeof value?.id === 'string' && ['B', 'E', 'U', 'R'].includes(value.t!);
}

/** Records that a damaged newline glued together, or glued to a damaged one: each still has its own checksum. */
function salvage(line: Buffer): JournalRecord[] {
  const starts = [...line.toString('latin1').matchAll(HEADER)].map(({ index }) => index);
  if (starts.length < 2 && (starts[0] ?? 0) === 0) return [];
  const pieces = starts.slice(0, MOST_PIECES);
  // One byte, the damaged newline, lies between two records.
  const ends = [...pieces.slice(1).map((start) => start - 1), line.length];
  const records: JournalRecord[] = [];
  let taken = 0;
  for (const start of pieces) {
    if (start < taken) continue;
    for (const end of ends) {
      const record = end > start ? decodeLine(line.subarray(start, end)) : null;
      if (record === null) continue;
      records.push(record);
      taken = end;
      break;
    }
  }
  return records;
}
