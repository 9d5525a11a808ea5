import { packageVersion } from '../../../platform/package-root.js';
import { patience } from '../../../platform/patience.js';
import { UnreachableError, whyUnreachable } from '../../api.js';
import { CliError } from '../../cli-error.js';
import { text as printable } from '../../table.js';

const TIMEOUT = patience('a gateway at a sign-in', 15_000);

/** An error of RFC 6749 5.2, or of the gateway as to any call (`x-gateway-error`). */
export class OauthResponseError extends CliError {
  constructor(
    readonly code: string,
    message: string,
  ) {
    // The gateway chooses it.
    super(printable(message));
  }
}

/** Where a gateway signs people in. */
export interface Endpoints {
  device: string;
  token: string;
  revocation: string;
}

export interface Tokens {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  email?: string;
}

/** The base URL of a gateway as a client has it, without a final slash. @throws CliError */
export function gatewayUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isLocal = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url === null || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new CliError(`<url> must be a URL such as https://gateway.example.com`);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal))
    throw new CliError('<url> must begin with https://; http only for this machine');
  return url.origin + url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/**
 * Reads the metadata of a gateway (RFC 8414). What it names elsewhere is not used: a token is sent to the gateway only.
 *
 * @throws CliError
 */
export async function discover(base: string): Promise<Endpoints> {
  const found = await fetchJson(`${base}/.well-known/oauth-authorization-server`, {});
  if (found.status === 404 || typeof found.body.device_authorization_endpoint !== 'string')
    throw new CliError(
      `People cannot sign in at ${base}: there is no gateway with SIGN_IN=on. Check the URL, or ask its administrator.`,
    );
  const at = (name: string, path: string) => {
    const named = found.body[name];
    const isThere = typeof named === 'string' && URL.canParse(named);
    return isThere && new URL(named).origin === new URL(base).origin ? named : base + path;
  };
  return {
    device: at('device_authorization_endpoint', '/oauth/device_authorization'),
    token: at('token_endpoint', '/oauth/token'),
    revocation: at('revocation_endpoint', '/oauth/revoke'),
  };
}

/** Sends parameters as a form. @throws OauthResponseError; CliError if the gateway cannot be reached */
export async function post<T>(url: string, parameters: Record<string, string>): Promise<T> {
  const { status, headers, body } = await fetchJson(url, {
    method: 'POST',
    body: new URLSearchParams(parameters),
  });
  if (status === 200) return body as T;
  const { error, error_description: description } = body;
  const code = typeof error === 'string' ? error : (headers.get('x-gateway-error') ?? `status_${status}`);
  const words =
    typeof description === 'string' ? description : `The gateway responded with ${status} (${code}).`;
  throw new OauthResponseError(code, words);
}

async function fetchJson(
  url: string,
  init: RequestInit,
): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  let response: Response;
  let text: string;
  try {
    // A redirect could lead a token elsewhere.
    response = await fetch(url, {
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT.ms),
      // The page on which the person confirms shows it.
      headers: { 'user-agent': `postern/${packageVersion()}` },
      ...init,
    });
    text = await response.text();
  } catch (error) {
    throw new UnreachableError(`${new URL(url).origin} cannot be reached: ${whyUnreachable(error)}`);
  }
  const { status, headers } = response;
  try {
    return { status, headers, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
  } catch {
    return { status, headers, body: {} };
  }
}
