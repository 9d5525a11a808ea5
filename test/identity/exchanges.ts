import type { TestGateway } from '../support/gateway.js';

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
