import type { GatewayErrorCode } from '../../errors/gateway-error.js';

/** An error of the provider or the connection to it, as error code and outcome. */
export interface UpstreamError {
  code: Extract<GatewayErrorCode, 'upstream_unreachable' | 'upstream_invalid_response' | 'upstream_timeout'>;
  outcome: 'upstream_error' | 'upstream_timeout' | 'truncated';
}

/**
 * Maps an error of undici to an error code and outcome.
 *
 * @param connected whether a connection carried this request; if not, the provider is unreachable
 * @param headSent whether the client has the head of the response; if so, the response is truncated
 */
export function readUpstreamError(error: Error, connected: boolean, headSent: boolean): UpstreamError {
  const { code } = error as { code?: string };
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
 * Returns true for a `Content-Length` among the trailer fields, which undici's parser rejects, once a response has begun: its body
 * is complete by then. undici reports only the parser's (llhttp's) message.
 */
export function isTrailerError({ name, message }: Error): boolean {
  return (
    name === 'HTTPParserError' && message.includes("Content-Length can't be present with Transfer-Encoding")
  );
}

/** Codes of Node, OpenSSL, undici and its parser. Those of the gateway are in lower case. */
const CAUSE = /^[A-Z][A-Z0-9_]{1,63}$/;
const MAX_DEPTH = 4;

/**
 * Why a connection failed, as a short token for the log: the code of the error, else of its cause. It never holds a host
 * name.
 *
 * @returns null if no error has a code
 */
export function errorCause(error: unknown): string | null {
  let inner = error;
  for (let depth = 0; depth < MAX_DEPTH && inner instanceof Error; depth++) {
    const { code, cause } = inner as { code?: unknown; cause?: unknown };
    if (typeof code === 'string' && CAUSE.test(code)) return code;
    inner = cause;
  }
  return null;
}
