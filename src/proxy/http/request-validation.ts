import { type IncomingMessage, METHODS } from 'node:http';
import { GatewayError } from '../../errors/gateway-error.js';

/** What the gate judges: the head of a request as Node parsed it, nothing decoded or merged. */
export type RequestHead = Pick<
  IncomingMessage,
  'method' | 'httpVersionMajor' | 'httpVersionMinor' | 'rawHeaders'
>;

/**
 * Methods that are never forwarded. RFC 9110 9.3.8: TRACE would return the credentials to the sender; 9.3.6: CONNECT makes
 * tunnels. SOURCE belongs to Icecast. Node's parser also accepts the methods of RTSP, but does not list them.
 */
const NOT_FORWARDED = ['TRACE', 'CONNECT', 'SOURCE'];
const FORWARDED = METHODS.filter((method) => !NOT_FORWARDED.includes(method));
const FORWARDED_METHODS = new Set<string | undefined>(FORWARDED);

/** Value of `Allow`: every method that is forwarded. */
export const ALLOWED_METHODS = FORWARDED.join(', ');

/**
 * RFC 9112 3.2: a Host that is no uri-host and port must be refused (RFC 3986 3.2.2; never empty, RFC 9110 4.2.1). The
 * value goes nowhere, but a hop that reads another host out of it than this one does would route by it.
 */
const HOST = /^(?!:)[\w.~%!$&'()*+,;=:[\]-]+$/;

/**
 * Refuses what Node's parser lets through although RFC 9112 forbids it or two hops could read it differently.
 *
 * @param maxBodyBytes largest announced body that is let in
 * @returns true when the connection can carry no further request
 * @throws GatewayError method_not_allowed, invalid_request, expectation_failed, request_too_large
 */
export function validateRequestHead(head: RequestHead, maxBodyBytes: number): boolean {
  // Node's parser takes `GET /path` (HTTP/0.9) and `HTTP/2.0` for requests too.
  if (head.httpVersionMajor !== 1) bad('Only HTTP/1.0 and HTTP/1.1 are served.');
  if (!FORWARDED_METHODS.has(head.method)) throw new GatewayError('method_not_allowed');

  const raw = head.rawHeaders;
  let hosts = 0;
  let authorizations = 0;
  let lengths = 0;
  let contentLength = 0;
  let encodings = 0;
  let expectsOther = false;
  let upgrades = false;
  for (let i = 0; i < raw.length; i += 2) {
    switch (raw[i]!.length) {
      case 4:
        if (raw[i]!.toLowerCase() === 'host') {
          hosts++;
          if (!HOST.test(raw[i + 1]!)) bad('The Host header is not a host name.');
        }
        break;
      case 6:
        if (raw[i]!.toLowerCase() === 'expect' && raw[i + 1]!.toLowerCase() !== '100-continue') {
          expectsOther = true;
        }
        break;
      case 7:
        if (raw[i]!.toLowerCase() === 'upgrade') upgrades = true;
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
  if (expectsOther) throw new GatewayError('expectation_failed');
  if (contentLength > maxBodyBytes) throw new GatewayError('request_too_large');
  // Nobody upgrades here, but Node 20 drops what came in the same packet after a request that asks for it: the rest of
  // that packet could be taken for a request.
  return upgrades;
}

function bad(message: string): never {
  throw new GatewayError('invalid_request', { message });
}
