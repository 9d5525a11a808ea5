import type { GatewayErrorCode } from '../../errors/gateway-error.js';

/** What went wrong upstream, in the gateway's terms. */
export interface UpstreamError {
  code: Extract<GatewayErrorCode, 'upstream_unreachable' | 'upstream_invalid_response' | 'upstream_timeout'>;
  outcome: 'upstream_error' | 'upstream_timeout' | 'truncated';
}

/**
 * Reads a fault of undici's.
 *
 * @param connected whether a connection carried this request: a reset before that is unreachability
 * @param headSent whether the client already has a head: the answer is then cut short, whatever the reason
 */
export function readUpstreamError(fault: Error, connected: boolean, headSent: boolean): UpstreamError {
  const { code } = fault as { code?: string };
  // undici's own codes (undici documentation, Errors).
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return { code: 'upstream_timeout', outcome: 'upstream_timeout' };
  }
  if (headSent) return { code: 'upstream_invalid_response', outcome: 'truncated' };
  return {
    code: connected ? 'upstream_invalid_response' : 'upstream_unreachable',
    outcome: 'upstream_error',
  };
}

/**
 * True for a `Content-Length` among the trailer fields, which undici's parser rejects, once a response has begun: its body
 * is whole by then. The parser's reason (llhttp) is all that undici tells of it.
 */
export function isTrailerError({ name, message }: Error): boolean {
  return (
    name === 'HTTPParserError' && message.includes("Content-Length can't be present with Transfer-Encoding")
  );
}
