import type { TestGateway } from '../support/gateway.js';

/** For tests with more exchanges in a second than one address may have. */
export const MANY_ADDRESSES = { TRUSTED_PROXIES: '127.0.0.1/32' };
let addresses = 0;
export const fromAnother = () => ({ 'x-forwarded-for': `10.1.${addresses >> 8}.${addresses++ & 255}` });

export const REJECTED = JSON.stringify({
  error: 'invalid_request',
  error_description: 'The token was not accepted.',
});

const JWT = 'urn:ietf:params:oauth:token-type:jwt';
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

export interface Exchanged {
  status: number;
  text: string;
  headers: Headers;
  token?: string;
  expiresIn?: number;
}

/** Sends parameters to an endpoint of the gateway, as a form. */
export async function postForm(
  url: string,
  parameters: Record<string, string> | [string, string][],
  headers: Record<string, string> = {},
): Promise<Exchanged> {
  const response = await fetch(url, { method: 'POST', headers, body: new URLSearchParams(parameters) });
  return exchanged(response);
}

/** Exchanges an identity token (RFC 8693). */
export function exchange(
  { url }: Pick<TestGateway, 'url'>,
  trust: string,
  token: string,
  more: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Exchanged> {
  const parameters = { grant_type: EXCHANGE, subject_token_type: JWT, subject_token: token, trust, ...more };
  return postForm(`${url}/oauth/token`, parameters, headers);
}

/**
 * Expects that a token is rejected as any other is, and that administrators are told why: one that is rejected for another
 * reason proves nothing.
 */
export async function expectRejection(
  gateway: TestGateway,
  trust: string,
  token: string,
  reason: string,
): Promise<void> {
  const { status, text } = await exchange(gateway, trust, token, {}, fromAnother());
  const verdict = await gateway.admin<{ reason: string }>('POST', `/trusts/${trust}/test`, { token });
  expect({ status, text, reason: verdict.reason }).toEqual({ status: 400, text: REJECTED, reason });
}

export async function exchanged(response: Response): Promise<Exchanged> {
  const text = await response.text();
  const { status, headers } = response;
  if (status !== 200 || text === '') return { status, text, headers };
  const body = JSON.parse(text) as { access_token: string; expires_in: number };
  return { status, text, headers, token: body.access_token, expiresIn: body.expires_in };
}

/** The status of a call with a key or token. */
export async function statusWith({ url }: Pick<TestGateway, 'url'>, key: string): Promise<number> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}
