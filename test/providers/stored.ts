import { randomBytes } from 'node:crypto';
import { answer, RawProvider } from '../support/raw-provider.js';
import type { TestGateway } from '../support/gateway.js';

/** What replicas have in common; each would else make a master key of its own in its data folder. */
export const SHARED = { MASTER_KEY: randomBytes(32).toString('base64') };

/** A provider that answers every call with its own name. */
export async function namedProvider(name: string): Promise<RawProvider> {
  return RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], name));
  });
}

/** What a call came to: the body of a provider's answer, or status and code of a rejection. */
export async function outcomeOf({ url }: TestGateway, path: string, key: string): Promise<string> {
  const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
  const body = await response.text();
  const code = response.headers.get('x-gateway-error');
  return code === null ? body : `${response.status} ${code}`;
}
