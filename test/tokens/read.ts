import type { Usage } from '../../src/tokens/token-counts.js';
import { copyFor, readUsage } from '../../src/tokens/usage-reader.js';

export interface Answer {
  endpoint?: string;
  contentType?: string | null;
  contentEncoding?: string | null;
  body: string | Uint8Array;
}

/** What the reader says of a response that came in these pieces: cut at `cuts`, or whole. */
export async function read(answer: Answer, ...cuts: number[]): Promise<Usage> {
  const body = Buffer.from(answer.body as string);
  const contentType = answer.contentType === undefined ? 'application/json' : answer.contentType;
  const endpoint = answer.endpoint ?? '/v1/chat/completions';
  const copy = copyFor(contentType, answer.contentEncoding, endpoint);
  let from = 0;
  for (const cut of [...cuts, body.length]) {
    copy?.add(body.subarray(from, cut));
    from = cut;
  }
  return readUsage(contentType, endpoint, copy);
}
