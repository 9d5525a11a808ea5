import type { Provider } from './provider.js';
import type { ProbeResult } from './providers.schema.js';

/** Makes the call. How bytes travel is the proxy's business, which implements this (proxy/upstream-probe.ts). */
export abstract class ProviderProbe {
  abstract run(provider: Provider): Promise<ProbeResult>;
}

export type Verdict = Pick<ProbeResult, 'ok' | 'code' | 'message'>;

const wrong = (code: ProbeResult['code'], message: string): Verdict => ({ ok: false, code, message });

/** What the status of `GET <url>/v1/models` says. */
export function verdictOfStatus(status: number, hasSecret: boolean): Verdict {
  if (status >= 200 && status < 300) {
    return {
      ok: true,
      code: 'ok',
      message: 'The provider answers, and takes the secret where it asks for one.',
    };
  }
  if (status === 401 || status === 403) {
    return hasSecret
      ? wrong(
          'unauthorized',
          'The provider refuses the secret. Store the right one, or correct how it is sent ("auth").',
        )
      : wrong('unauthorized', 'The provider asks for a secret and none is stored. Store one.');
  }
  if (status === 404) {
    return wrong(
      'not_found',
      'The provider has no /v1/models below this url. Correct the path of the url; a few providers have no such list.',
    );
  }
  if (status === 429) {
    return wrong(
      'rate_limited',
      'The provider answers, but limits calls or has no quota left. Try again later.',
    );
  }
  if (status >= 300 && status < 400) {
    return wrong(
      'redirect',
      'The provider sends callers elsewhere; redirects are not followed. Use its final url.',
    );
  }
  if (status >= 500) return wrong('provider_error', 'The provider answers, but fails. Try again later.');
  // Gemini answers 400 to a wrong secret.
  return wrong(
    'unexpected_status',
    'The provider does not take this call. Check the secret, its "auth", and the url.',
  );
}

/** Faults of the system and of undici (undici documentation, Errors) by their codes. */
const FAULTS: Record<string, Verdict> = {
  ENOTFOUND: wrong('name_not_resolved', 'The host name of the url does not resolve. Correct it, or the DNS.'),
  EAI_AGAIN: wrong('name_not_resolved', 'The host name of the url could not be resolved. Check the DNS.'),
  ECONNREFUSED: wrong(
    'refused',
    'Nothing listens at this host and port. Start the provider, or correct the url.',
  ),
  EPROTO: wrong('tls', 'The other side does not speak TLS properly. Use http:// if it is a local plain one.'),
  UND_ERR_CONNECT_TIMEOUT: wrong(
    'timeout',
    'No connection was made in time. Check the url, firewalls and routes.',
  ),
  UND_ERR_HEADERS_TIMEOUT: wrong('timeout', 'The provider took the call and did not answer in time.'),
  UND_ERR_SOCKET: wrong(
    'not_http',
    'The other side closed the connection without an answer. Check scheme and port.',
  ),
  ECONNRESET: wrong('not_http', 'The other side broke the connection off. Check scheme and port of the url.'),
};

/** Certificates that Node does not believe (Node.js documentation, X509 certificate error codes). */
const CERTIFICATE = /CERT|UNABLE_TO_(GET|VERIFY|DECODE)|SIGNATURE|CRL|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)/;

/** What a fault before any answer says. Never repeats the fault's own words: they may hold addresses. */
export function verdictOfFault(error: unknown): Verdict {
  const { code = '', name } = (error ?? {}) as { code?: string; name?: string };
  const known = FAULTS[code];
  if (known !== undefined) return known;
  if (name === 'TimeoutError') return FAULTS.UND_ERR_HEADERS_TIMEOUT!;
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS_CERT') || CERTIFICATE.test(code)) {
    return code.startsWith('ERR_SSL')
      ? FAULTS.EPROTO!
      : wrong('tls', "The provider's certificate is not trusted. Give a private CA by NODE_EXTRA_CA_CERTS.");
  }
  if (name === 'HTTPParserError')
    return wrong('not_http', 'The other side does not speak HTTP. Check scheme and port of the url.');
  return wrong(
    'unreachable',
    'The provider could not be reached. Check the url, the network and any egress proxy.',
  );
}
