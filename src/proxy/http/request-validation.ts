import { type IncomingMessage, METHODS } from 'node:http';
import { GatewayError } from '../../errors/gateway-error.js';

/** The head of a request as Node parsed it, nothing decoded or merged. */
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
 * RFC 9112 3.2: a Host that is not a uri-host and port must be rejected (RFC 3986 3.2.2; never empty, RFC 9110 4.2.1). The
 * gateway does not use the value, but a proxy before it might read another host from it and route by that.
 */
const HOST = /^(?!:)[\w.~%!$&'()*+,;=:[\]-]+$/;

/**
 * Rejects what Node's parser accepts although RFC 9112 forbids it or two hops could read it differently.
 *
 * @param maxBodyBytes largest declared body that is accepted
 * @returns true if the connection can carry no further request
 * @throws GatewayError method_not_allowed, invalid_request, expectation_failed, request_too_large
 */
export function validateRequestHead(head: RequestHead, maxBodyBytes: number): boolean {
  // Node's parser also accepts `GET /path` (HTTP/0.9) and `HTTP/2.0`.
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
          // RFC 9112 6.1: with any coding but a single final `chunked`, the length of the body is ambiguous.
          if (raw[i + 1]!.toLowerCase() !== 'chunked') bad('Transfer-Encoding must be "chunked".');
        }
        break;
    }
  }
  // RFC 9112 3.2: exactly one Host on HTTP/1.1.
  if (hosts > 1 || (hosts === 0 && head.httpVersionMinor === 1)) bad('Exactly one Host header is required.');
  if (authorizations > 1) bad('Authorization is repeated.');
  if (encodings > 1 || (encodings === 1 && lengths > 0)) bad('The length of the body is ambiguous.');
  // RFC 9112 6.1: Transfer-Encoding on HTTP/1.0 must be treated as faulty framing.
  if (encodings === 1 && head.httpVersionMinor === 0) bad('Transfer-Encoding is not part of HTTP/1.0.');
  if (lengths > 1 || !Number.isSafeInteger(contentLength)) bad('Content-Length is repeated or out of range.');
  if (expectsOther) throw new GatewayError('expectation_failed');
  if (contentLength > maxBodyBytes) throw new GatewayError('request_too_large');
  // Only a WebSocket takes the connection over. After any other request with `Upgrade`, Node 20 drops the bytes that follow it in the same
  // packet, so a later part of them could be taken for a request.
  return upgrades;
}

function bad(message: string): never {
  throw new GatewayError('invalid_request', { message });
}
