import { type IssuedToken, readToken, type TokenEndpoint, TokenError } from './token-endpoint.js';

export interface ServiceAccount {
  readonly clientEmail: string;
  /** PKCS #8 in PEM. */
  readonly privateKey: string;
  readonly privateKeyId: string | null;
  readonly tokenUrl: string;
  readonly scope: string;
}

const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** The longest life that Google allows for an assertion. */
const LIFE_S = 3_600;
/** A larger difference between the clocks is corrected. */
const TOLERATED_SKEW_MS = 30_000;

/**
 * Requests a token with a signed assertion (RFC 7523; Google Identity, "Using OAuth 2.0 for Server to Server Applications").
 * If the endpoint rejects it and its clock differs, the request is repeated once with the endpoint's time.
 *
 * @throws TokenError
 */
export async function requestServiceAccountToken(
  account: ServiceAccount,
  endpoint: TokenEndpoint,
  now: () => number = Date.now,
): Promise<IssuedToken> {
  const ask = async (at: number) => {
    const signed = await assertion(account, at);
    const form = new URLSearchParams({ grant_type: GRANT, assertion: signed });
    return { ...(await endpoint.post(account.tokenUrl, form)), signed };
  };
  const first = await ask(now());
  const skew = first.date === null ? 0 : first.date - now();
  if (first.status < 400 || first.status > 499 || Math.abs(skew) <= TOLERATED_SKEW_MS)
    return readToken(first, [first.signed]);
  const second = await ask(now() + skew);
  try {
    return readToken(second, [second.signed]);
  } catch (error) {
    const seconds = Math.round(Math.abs(skew) / 1000);
    const direction = skew < 0 ? 'ahead of' : 'behind';
    throw new TokenError(
      `${(error as Error).message}; this machine's clock is ${seconds} s ${direction} the token endpoint's`,
    );
  }
}

/** Loads jose only where it is needed. */
async function assertion(account: ServiceAccount, nowMs: number): Promise<string> {
  const { importPKCS8, SignJWT } = await import('jose');
  const { clientEmail, privateKey, privateKeyId, tokenUrl, scope } = account;
  const issuedAt = Math.floor(nowMs / 1000);
  return new SignJWT({ scope })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT', ...(privateKeyId !== null && { kid: privateKeyId }) })
    .setIssuer(clientEmail)
    .setAudience(tokenUrl)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + LIFE_S)
    .sign(await importPKCS8(privateKey, 'RS256'));
}
