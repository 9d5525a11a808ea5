import { createHash } from 'node:crypto';
import type { TestGateway } from '../support/gateway.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';

export const CHAT = 'POST /v1/chat/completions';

/** Sends one call under an `Idempotency-Key`; its response is the caller's to await. */
export async function open(
  { port }: Pick<TestGateway, 'port'>,
  headers: string[],
  body: string | Buffer = '{}',
  line = CHAT,
): Promise<RawClient> {
  const client = await RawClient.connect(port);
  client.send(request(line, headers, body));
  return client;
}

/** One call and its whole response, on a connection of its own. */
export async function once(
  gateway: Pick<TestGateway, 'port'>,
  headers: string[],
  body: string | Buffer = '{}',
  line = CHAT,
): Promise<ReceivedResponse> {
  const client = await open(gateway, headers, body, line);
  const reply = await client.answer();
  client.destroy();
  return reply;
}

export const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** What a retry must have in common with the first. */
export function essence(reply: ReceivedResponse) {
  return [reply.status, reply.header('content-type'), hashOf(reply.body)];
}
