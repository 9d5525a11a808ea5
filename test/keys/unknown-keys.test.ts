import type { Request } from 'express';
import { KeyLookupService } from '../../src/keys/key-lookup.service.js';
import { isWellFormedKey, mintKey } from '../../src/keys/key-secret.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let provider: RawProvider;
let gateway: TestGateway;

beforeAll(async () => {
  provider = await RawProvider.start(async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', [], 'ok'));
  });
  gateway = await startTestGateway({ PROVIDER_URL: provider.url });
});
afterAll(async () => {
  await gateway.stop();
  await provider.stop();
});

/** As much of a request as the look-up reads. */
const from = (remoteAddress: string) => ({ headers: {}, socket: { remoteAddress } }) as unknown as Request;

async function status(key: string): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

it('never lets a known key wait behind a flood of minted ones', async () => {
  expect(await status(gateway.key)).toBe(200);
  const flood = Array.from({ length: 300 }, () => status(mintKey()));
  const known = await Promise.all(Array.from({ length: 50 }, () => status(gateway.key)));
  expect(known.every((one) => one === 200)).toBe(true);
  const verdicts = new Set(await Promise.all(flood));
  expect([...verdicts].every((one) => one === 401 || one === 503)).toBe(true);
});

it('looks up only so many unknown keys of one address, and another address is not made to wait', async () => {
  const lookup = gateway.gateway.app.get(KeyLookupService);
  const flood = await Promise.allSettled(
    Array.from({ length: 500 }, () => Promise.resolve(lookup.find(mintKey(), from('192.0.2.1')))),
  );
  // Fifty a second; the flood may stand on both sides of a second's end.
  expect(flood.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(100);
  for (const one of flood) {
    if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'overloaded' });
  }
  expect(await lookup.find(mintKey(), from('192.0.2.2'))).toBeNull();
});

it('counts the addresses of one IPv6 network together', async () => {
  const lookup = gateway.gateway.app.get(KeyLookupService);
  const flood = await Promise.allSettled(
    Array.from({ length: 300 }, (_, i) => Promise.resolve(lookup.find(mintKey(), from(`2001:db8::${i}`)))),
  );
  expect(flood.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(100);
});

it('takes none of a million near misses for a key', () => {
  const key = mintKey();
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  let accepted = 0;
  for (let i = 0; i < 1_000_000; i++) {
    // One character changed, at each place in turn: CRC-32 finds every single change.
    const at = 4 + (i % 38);
    const letter = alphabet[(alphabet.indexOf(key[at]!) + 1 + (Math.floor(i / 38) % 61)) % 62]!;
    if (isWellFormedKey(key.slice(0, at) + letter + key.slice(at + 1))) accepted++;
  }
  expect(accepted).toBe(0);
});
