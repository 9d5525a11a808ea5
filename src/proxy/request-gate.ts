import type { IncomingMessage } from 'node:http';
import { Refusal } from '../refusal.js';

/** What the gate judges: the head of a request as Node parsed it, nothing decoded or merged. */
export type RequestHead = Pick<IncomingMessage, 'method' | 'httpVersionMinor' | 'rawHeaders'>;

/**
 * Refuses what Node's parser lets through although RFC 9112 forbids it or two hops could read it differently.
 *
 * @param maxBodyBytes largest announced body that is let in
 * @throws Refusal method_not_allowed, invalid_request, request_too_large
 */
export function judgeRequestHead(head: RequestHead, maxBodyBytes: number): void {
  // RFC 9110 9.3.8: TRACE would mirror the credentials; 9.3.6: CONNECT makes tunnels, which this is not.
  if (head.method === 'TRACE' || head.method === 'CONNECT') throw new Refusal('method_not_allowed');

  const raw = head.rawHeaders;
  let hosts = 0;
  let authorizations = 0;
  let lengths = 0;
  let contentLength = 0;
  let encodings = 0;
  for (let i = 0; i < raw.length; i += 2) {
    switch (raw[i]!.length) {
      case 4:
        if (raw[i]!.toLowerCase() === 'host') hosts++;
        break;
      case 13:
        if (raw[i]!.toLowerCase() === 'authorization') authorizations++;
        break;
      case 14:
        if (raw[i]!.toLowerCase() === 'content-length') {
          lengths++;
          contentLength = Number(raw[i + 1]);
        }
        break;
      case 17:
        if (raw[i]!.toLowerCase() === 'transfer-encoding') {
          encodings++;
          // RFC 9112 6.1: any coding but a single final `chunked` makes the body's length a matter of opinion.
          if (raw[i + 1]!.toLowerCase() !== 'chunked') bad('Transfer-Encoding must be "chunked".');
        }
        break;
    }
  }
  // RFC 9112 3.2: exactly one Host on HTTP/1.1.
  if (hosts > 1 || (hosts === 0 && head.httpVersionMinor === 1)) bad('Exactly one Host header is needed.');
  if (authorizations > 1) bad('Authorization is repeated.');
  if (encodings > 1 || (encodings === 1 && lengths > 0)) bad('The length of the body is ambiguous.');
  // RFC 9112 6.1: Transfer-Encoding on HTTP/1.0 must be treated as faulty framing.
  if (encodings === 1 && head.httpVersionMinor === 0) bad('Transfer-Encoding is not part of HTTP/1.0.');
  if (lengths > 1 || !Number.isSafeInteger(contentLength)) bad('Content-Length is repeated or out of range.');
  if (contentLength > maxBodyBytes) throw new Refusal('request_too_large');
}

function bad(message: string): never {
  throw new Refusal('invalid_request', { message });
}
