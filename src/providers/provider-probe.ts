import type { Provider } from './provider.js';
import type { ProbeResult } from './providers.schema.js';

/** Sends a test request to a provider. proxy/upstream implements it. */
export abstract class ProviderProbe {
  abstract run(provider: Provider): Promise<ProbeResult>;
}

export type Verdict = Pick<ProbeResult, 'ok' | 'code' | 'message'>;

const wrong = (code: ProbeResult['code'], message: string): Verdict => ({ ok: false, code, message });

/**
 * The verdict for the status of `GET <url>/v1/models`.
 *
 * @param forwardsCredentials the provider takes the credential of callers, which a test has not
 */
export function verdictOfStatus(status: number, hasSecret: boolean, forwardsCredentials = false): Verdict {
  if (status >= 200 && status < 300) {
    return {
      ok: true,
      code: 'ok',
      message: 'OK: the provider responded and accepted the secret.',
    };
  }
  if (forwardsCredentials && (status === 401 || status === 403 || status === 404)) {
    return {
      ok: true,
      code: 'ok',
      message: 'OK: the provider responded. Whether it accepts a credential shows when a caller sends one.',
    };
  }
  if (status === 401 || status === 403) {
    return hasSecret
      ? wrong(
          'unauthorized',
          'The provider rejected the secret. Store the right one, or change how it is sent ("auth").',
        )
      : wrong('unauthorized', 'The provider requires a secret and none is stored. Store one.');
  }
  if (status === 404) {
    return wrong(
      'not_found',
      'The provider has no /v1/models below this URL. Correct the path of the URL; a few providers have no such endpoint.',
    );
  }
  if (status === 429) {
    return wrong(
      'rate_limited',
      'The provider responded, but limits calls or has no quota left. Try again later.',
    );
  }
  if (status >= 300 && status < 400) {
    return wrong('redirect', 'The provider redirects; Postern does not follow redirects. Use the final URL.');
  }
  if (status >= 500)
    return wrong('provider_error', 'The provider responded with a server error. Try again later.');
  // Gemini returns 400 for a wrong secret.
  return wrong(
    'unexpected_status',
    'The provider rejected the request. Check the secret, its "auth", and the URL.',
  );
}

/** The verdict for a token endpoint's failure. */
export function verdictOfToken(reason: unknown): Verdict {
  const what = reason instanceof Error ? reason.message : 'no token could be obtained';
  return wrong(
    'credential_unavailable',
    `No credential: ${what}. Check the settings of its auth, and the secret if it has one.`,
  );
}

/** The verdict for a provider that rejects an access token. */
export function verdictOfRejectedToken(): Verdict {
  return wrong(
    'unauthorized',
    'A token was issued, but the provider rejected it. Check what its owner may do at the provider, and the scope.',
  );
}

/** The verdict for a signed request that was rejected. @param skewMs the provider's clock ahead of this one; NaN: unknown */
export function verdictOfDenied(skewMs: number): Verdict {
  const minutes = Math.round(Math.abs(skewMs) / 60_000);
  if (minutes >= 5) {
    return wrong(
      'unauthorized',
      `The provider rejected the signature, and this machine's clock is ${minutes} minutes ${skewMs < 0 ? 'ahead' : 'behind'}. Set the clock.`,
    );
  }
  return wrong(
    'unauthorized',
    'The provider rejected the signature, or the access key lacks a permission. Check the access key, the region and the service.',
  );
}

/** Verdicts for errors of the system and of undici (undici documentation, Errors), by code. */
const BY_CODE: Record<string, Verdict> = {
  ENOTFOUND: wrong(
    'name_not_resolved',
    'The host name of the URL does not resolve. Correct the URL or the DNS.',
  ),
  EAI_AGAIN: wrong('name_not_resolved', 'The host name of the URL could not be resolved. Check the DNS.'),
  ECONNREFUSED: wrong(
    'refused',
    'Connection refused: nothing listens at this host and port. Start the provider, or correct the URL.',
  ),
  EPROTO: wrong(
    'tls',
    'The TLS handshake failed. If the provider is local and uses plain HTTP, use http://.',
  ),
  UND_ERR_CONNECT_TIMEOUT: wrong('timeout', 'Connecting timed out. Check the URL, firewalls and routes.'),
  UND_ERR_HEADERS_TIMEOUT: wrong('timeout', 'The provider accepted the request but did not respond in time.'),
  UND_ERR_SOCKET: wrong(
    'not_http',
    'The connection was closed without a response. Check the scheme and port of the URL.',
  ),
  ECONNRESET: wrong('not_http', 'The connection was reset. Check the scheme and port of the URL.'),
};

/** Codes of certificates that Node rejects (Node.js documentation, X509 certificate error codes). */
const CERTIFICATE = /CERT|UNABLE_TO_(GET|VERIFY|DECODE)|SIGNATURE|CRL|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)/;

/** The verdict for an error before any response. It never quotes the error, which may contain addresses. */
export function verdictOfError(error: unknown): Verdict {
  const { code = '', name } = (error ?? {}) as { code?: string; name?: string };
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (name === 'TimeoutError') return BY_CODE.UND_ERR_HEADERS_TIMEOUT!;
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS_CERT') || CERTIFICATE.test(code)) {
    return code.startsWith('ERR_SSL')
      ? BY_CODE.EPROTO!
      : wrong('tls', "The provider's certificate is not trusted. For a private CA, set NODE_EXTRA_CA_CERTS.");
  }
  if (name === 'HTTPParserError')
    return wrong('not_http', 'The response is not HTTP. Check the scheme and port of the URL.');
  return wrong(
    'unreachable',
    'The provider could not be reached. Check the URL, the network and any egress proxy.',
  );
}
