import type { TestGateway } from '../support/gateway.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';

/** Headers that the console sends with each change, in a browser on this machine. */
export const CONSOLE = [
  'Content-Type: application/json',
  'X-Postern-Console: 1',
  'Sec-Fetch-Site: same-origin',
];

/** One request to the admin API in bytes, on a connection of its own. */
export async function send(
  { gateway }: Pick<TestGateway, 'gateway'>,
  line: string,
  headers: readonly string[] = [],
  body = '',
): Promise<ReceivedResponse & { json: () => Record<string, unknown> }> {
  const url = new URL(gateway.adminUrl ?? gateway.url);
  const client = await RawClient.connect(Number(url.port));
  const host = headers.some((header) => header.startsWith('Host:')) ? [] : [`Host: ${url.host}`];
  const bytes = request(line, [...host, ...headers, 'Connection: close'], body);
  // Without the helper's own Host.
  client.send(bytes.toString('latin1').replace('Host: gateway.test\r\n', ''));
  const answer = await client.answer({ bodyless: line.startsWith('HEAD') });
  client.destroy();
  return { ...answer, json: () => JSON.parse(answer.body.toString()) as Record<string, unknown> };
}

/** `name=value` of the cookie that a response sets. */
export function cookieOf(answer: ReceivedResponse): string {
  return answer.header('set-cookie')!.split(';')[0]!;
}

/** Signs in. @returns the Cookie header of the session */
export async function signIn(postern: Pick<TestGateway, 'gateway'>, token: string): Promise<string> {
  const body = JSON.stringify({ token });
  const answer = await send(postern, 'POST /admin/v1/session', CONSOLE, body);
  if (answer.status !== 204) throw new Error(`${answer.status} ${answer.body.toString()}`);
  return `Cookie: ${cookieOf(answer)}`;
}
