import { crc32 } from 'node:zlib';
import { columnsOf, LOGGED_COLUMNS, type LoggedColumn, type LogRow } from '../columns.js';

/**
 * The types of journal records: B when the call begins, before it is forwarded; E when it ends, before the last byte of
 * the response is written; U when the response has been read, and while a WebSocket is open with its usage so far. R is a whole row, in place of U, that is spilled because
 * memory is full.
 */
export type RecordType = 'B' | 'E' | 'U' | 'R';

/** One record: some columns of one call, each value in its column's domain. */
export type JournalRecord = { t: RecordType; id: string } & Partial<LogRow>;

const VERSION = 'v1';
const NEWLINE = 0x0a;
/** `v1 ` + 8 hex digits + a space. */
const HEADER_LENGTH = 12;
/** Eight texts of 1,024 characters and tags of 2,048, each of which JSON may write as `\u0001`, and the rest of a row. */
export const MAX_LINE_LENGTH = 98_304;
/** Where a record may begin inside a damaged line. */
const HEADER = /v1 [0-9a-f]{8} \{/g;
/** Limits the work for a line that was crafted to look like many records. */
const MAX_PIECES = 64;

/** A SHA-256 in base64url. */
const CLAIM = /^[A-Za-z0-9_-]{43}$/;

const ID = LOGGED_COLUMNS.filter(({ name }) => name === 'id');

/** A column, and how its member begins in the JSON of a record. */
type RecordColumn = LoggedColumn & { readonly member: string };

/** The columns that a record of each type holds. */
const COLUMNS_OF: Record<RecordType, readonly RecordColumn[]> = {
  B: membersOf(columnsOf('begin')),
  E: membersOf([...ID, ...columnsOf('end')]),
  U: membersOf([...ID, ...columnsOf('usage')]),
  R: membersOf(LOGGED_COLUMNS),
};

function membersOf(columns: readonly LoggedColumn[]): RecordColumn[] {
  return columns.map((column) => ({ ...column, member: `,"${column.name}":` }));
}

/**
 * The JSON of a record in ASCII, so that one character is one byte. It never contains a newline.
 *
 * @param withNulls whether it holds columns that are null. Needed only if an earlier record of the call may have another
 * value in them
 */
export function encodeRecord(t: RecordType, values: Partial<LogRow>, withNulls = false): string {
  let json = `{"t":"${t}"`;
  for (const { name, member } of COLUMNS_OF[t]) {
    const value = values[name] ?? null;
    if (value !== null || withNulls) json += member + jsonOf(value);
  }
  if (values.job !== undefined && t !== 'B') json += `,"job":${jsonOf(values.job)}`;
  if (values.claim !== undefined && (t === 'B' || t === 'R')) json += `,"claim":${jsonOf(values.claim)}`;
  return `${json}}`;
}

/** A text of which JSON escapes nothing, in ASCII. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const NOT_ASCII = /[\x7f-\uffff]/g;

function jsonOf(value: unknown): string {
  if (typeof value === 'string' && PLAIN.test(value)) return `"${value}"`;
  return JSON.stringify(value).replace(NOT_ASCII, inAscii);
}

function inAscii(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** The line of one record, with the columns that are null. */
export function encodeLine(record: JournalRecord): Buffer {
  return encodeLines([encodeRecord(record.t, record, true)]);
}

/** Bytes that a record's line takes. */
export function lineLength(json: string): number {
  return HEADER_LENGTH + json.length + 1;
}

/**
 * Lines, one for each record: version, CRC-32 of the JSON, the JSON, a newline.
 *
 * @param records as they were encoded above
 */
export function encodeLines(records: readonly string[]): Buffer {
  let text = '';
  for (const json of records) text += `${EMPTY_HEADER}${json}\n`;
  const lines = Buffer.from(text, 'latin1');
  let at = 0;
  for (const { length } of records) {
    const end = at + HEADER_LENGTH + length;
    // Of the bytes: of a string, it would be computed from a copy.
    let sum = crc32(lines.subarray(at + HEADER_LENGTH, end));
    for (let digit = at + HEADER_LENGTH - 2; sum > 0; digit--) {
      lines[digit] = HEX_DIGITS[sum & 15]!;
      sum >>>= 4;
    }
    at = end + 1;
  }
  return lines;
}

const EMPTY_HEADER = `${VERSION} 00000000 `;
const HEX_DIGITS = Buffer.from('0123456789abcdef');

function headerOf(json: Buffer): string {
  return `${VERSION} ${crc32(json).toString(16).padStart(8, '0')} `;
}

export interface DecodedLines {
  records: JournalRecord[];
  /** Number of torn or damaged records. */
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
    // An empty one only tested whether the file can be written.
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
  if (line.length <= HEADER_LENGTH || line.length > MAX_LINE_LENGTH) return null;
  const json = line.subarray(HEADER_LENGTH);
  if (line.toString('latin1', 0, HEADER_LENGTH) !== headerOf(json)) return null;
  try {
    return toRecord(JSON.parse(json.toString()));
  } catch {
    // A checksum that matches by chance over bytes that are not JSON: one in four billion damaged records.
    return null;
  }
}

/**
 * Keeps the columns that a record of this type has. One written by another version may lack some, which then keep their
 * defaults, or have others, which are dropped.
 */
function toRecord(value: unknown): JournalRecord | null {
  const { t, id } = (value ?? {}) as { t?: unknown; id?: unknown };
  const columns = typeof t === 'string' && Object.hasOwn(COLUMNS_OF, t) ? COLUMNS_OF[t as RecordType] : null;
  if (columns === null || typeof id !== 'string') return null;
  const known = value as Partial<LogRow>;
  const record: Record<string, unknown> = { t, id };
  for (const { name, toDomain } of columns) {
    if (known[name] !== undefined) record[name] = toDomain(known[name], null);
  }
  if (typeof known.job === 'string') record.job = known.job;
  if (typeof known.claim === 'string' && CLAIM.test(known.claim)) record.claim = known.claim;
  return record as JournalRecord;
}

/** Recovers records that a damaged newline joined with others: each still has its own checksum. */
function salvage(line: Buffer): JournalRecord[] {
  const starts = [...line.toString('latin1').matchAll(HEADER)].map(({ index }) => index);
  if (starts.length < 2 && (starts[0] ?? 0) === 0) return [];
  const pieces = starts.slice(0, MAX_PIECES);
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
