import { mintKey } from '../../src/keys/key-secret.js';
import { isWellFormedKey } from '../../src/keys/key-secret.js';
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

async function status(key: string): Promise<number> {
  const response = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.arrayBuffer();
  return response.status;
}

it('bounds look-ups of minted keys and never lets a known one wait behind them', async () => {
  expect(await status(gateway.key)).toBe(200);
  const verdicts: number[] = [];
  const flood = Array.from({ length: 500 }, async () => verdicts.push(await status(mintKey())));
  const known = await Promise.all(Array.from({ length: 50 }, () => status(gateway.key)));
  expect(known.every((one) => one === 200)).toBe(true);
  await Promise.all(flood);
  expect(new Set(verdicts)).toEqual(new Set([401, 503]));
  expect(verdicts.filter((one) => one === 401).length).toBeLessThanOrEqual(200);
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
