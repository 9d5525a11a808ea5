// What reads bodies, for countSteps().
import { endUserOf } from '../../src/bodies/end-user.js';
import { JsonWalk } from '../../src/bodies/json-walk.js';
import { MEMBER_NAMES, ROW_NAMES } from '../../src/bodies/member-names.js';
import { RequestReader } from '../../src/bodies/request-reader.js';
import { AWS_EVENT_STREAM } from '../../src/bodies/usage/framing/aws-event-stream.js';
import { SERVER_SENT_EVENTS } from '../../src/bodies/usage/framing/server-sent-events.js';
import { LINES } from '../../src/bodies/usage/framing/stream-framing.js';
import { counterFor } from '../../src/bodies/usage/listed/listed-counter.js';
import { readJsonUsage } from '../../src/bodies/usage/json-usage.js';
import { PlainCopy } from '../../src/bodies/usage/plain-copy.js';
import { readStreamUsage } from '../../src/bodies/usage/stream-usage.js';
import { readBody, readForRow } from './read-body.js';

export { read } from './usage/read.js';

/** All of countSteps(). */
export const COUNTED_READERS = import.meta.url;

const NO_JSON = new JsonWalk(MEMBER_NAMES, true);

function kept(body: Buffer) {
  const copy = new PlainCopy();
  copy.add(body);
  return copy.take();
}

export const request = (body: Buffer) => void endUserOf(readBody(body).json ?? NO_JSON);
export const requestForRow = (body: Buffer) => void endUserOf(readForRow(body).json ?? NO_JSON);
export const json = (body: Buffer) => void readJsonUsage(kept(body), '/v1/chat/completions');
export const eventStream = (body: Buffer) =>
  void readStreamUsage(kept(body), '/v1/responses', SERVER_SENT_EVENTS);
export const lines = (body: Buffer) => void readStreamUsage(kept(body), '/api/chat', LINES);
export const binaryEventStream = (body: Buffer) =>
  void readStreamUsage(kept(body), '/model/m/converse-stream', AWS_EVENT_STREAM);

/** What reads bodies that come in chunks. */
const OF_REQUESTS = {
  'a request': () => new RequestReader(true),
  'a request for its row': () => new RequestReader(false),
};
const OF_RESPONSES = {
  'tool calls': () => counterFor('application/json', '/v1/responses')!,
  'tool calls of a stream': () => counterFor('text/event-stream', '/v1/responses')!,
  images: () => counterFor('application/json', '/v1/images/edits')!,
  searches: () => counterFor('application/json', ':generateContent')!,
  'searches of a stream': () => counterFor('text/event-stream', ':streamGenerateContent')!,
};
const IN_CHUNKS = { ...OF_REQUESTS, ...OF_RESPONSES };
export const REQUEST_READERS = Object.keys(OF_REQUESTS);
export const RESPONSE_READERS = Object.keys(OF_RESPONSES);

/** Reads the begin of a body, and then as many chunks of it. @returns the bytes that it then keeps */
export function chunks(of: keyof typeof IN_CHUNKS, begin: string, chunk: Buffer, count: number): number {
  const reader = IN_CHUNKS[of]();
  reader.add(Buffer.from(begin));
  for (let i = 0; i < count; i++) reader.add(chunk);
  return keptBytes(reader, new Set([MEMBER_NAMES, ROW_NAMES]));
}

/** The bytes of all that an object refers to. @param seen what is not counted (again) */
function keptBytes(value: unknown, seen: Set<unknown>): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  if (seen.has(value)) return 0;
  seen.add(value);
  if (Buffer.isBuffer(value)) return value.length;
  const parts = value instanceof Map || value instanceof Set ? [...value] : Object.values(value);
  return parts.reduce<number>((sum, part) => sum + keptBytes(part, seen), 8);
}
