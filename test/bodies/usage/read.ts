import type { ResponseUsage } from '../../../src/bodies/usage/token-usage.js';
import { copyFor, readUsage, usageOfHead } from '../../../src/bodies/usage/usage-reader.js';

export interface Answer {
  endpoint?: string;
  contentType?: string | null;
  contentEncoding?: string | null;
  /** Flat raw headers. */
  headers?: string[];
  body: string | Uint8Array;
}

/** What the reader says of a response that came in these pieces, but for what closed it. */
export async function read(answer: Answer, ...cuts: number[]): Promise<ResponseUsage> {
  const { closing: _, ...usage } = await readClosed(answer, ...cuts);
  return usage;
}

/** What the reader says of a response that came in these pieces: cut at `cuts`, or whole. */
export async function readClosed(answer: Answer, ...cuts: number[]): Promise<ResponseUsage> {
  const body = Buffer.from(answer.body as string);
  const contentType = answer.contentType === undefined ? 'application/json' : answer.contentType;
  const endpoint = answer.endpoint ?? '/v1/chat/completions';
  const copy = copyFor(contentType, answer.contentEncoding, endpoint);
  let from = 0;
  for (const cut of [...cuts, body.length]) {
    copy?.add(body.subarray(from, cut));
    from = cut;
  }
  return readUsage(contentType, endpoint, copy, usageOfHead(answer.headers ?? [], endpoint));
}
