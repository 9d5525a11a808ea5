// What reads bodies, for countSteps().
import { endUserOf } from '../../src/bodies/end-user.js';
import { JsonWalk } from '../../src/bodies/json-walk.js';
import { MEMBER_NAMES } from '../../src/bodies/member-names.js';
import { RequestReader } from '../../src/bodies/request-reader.js';
import { AWS_EVENT_STREAM } from '../../src/bodies/usage/framing/aws-event-stream.js';
import { SERVER_SENT_EVENTS } from '../../src/bodies/usage/framing/server-sent-events.js';
import { LINES } from '../../src/bodies/usage/framing/stream-framing.js';
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

/** Reads the begin of a body, and then as many chunks of it. */
export function chunks(begin: string, chunk: Buffer, count: number, isCertain: boolean): void {
  const reader = new RequestReader(isCertain);
  reader.add(Buffer.from(begin));
  for (let i = 0; i < count; i++) reader.add(chunk);
}
