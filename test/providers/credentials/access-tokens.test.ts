import { AccessTokens } from '../../../src/providers/credentials/access-tokens.js';
import type { IssuedToken } from '../../../src/providers/credentials/token-endpoint.js';

/** Tokens with clocks and an endpoint that the test moves. */
class Bench {
  monotonic = 0;
  wall = 1_000_000;
  requests = 0;
  readonly failures: [message: string, hasToken: boolean][] = [];
  private settle: { resolve: (token: IssuedToken) => void; reject: (error: Error) => void }[] = [];
  readonly tokens: AccessTokens = new AccessTokens(
    () => {
      this.requests++;
      return new Promise((resolve, reject) => this.settle.push({ resolve, reject }));
    },
    (reason, hasToken) => this.failures.push([reason.message, hasToken]),
    { monotonic: () => this.monotonic, wall: () => this.wall },
  );

  pass(ms: number): void {
    this.monotonic += ms;
    this.wall += ms;
  }

  async issue(value: string, lifeMs = 3_600_000): Promise<void> {
    this.settle.shift()!.resolve({ value, lifeMs });
    await new Promise(setImmediate);
  }

  async fail(message = 'down'): Promise<void> {
    this.settle.shift()!.reject(new Error(message));
    await new Promise(setImmediate);
  }
}

const codeOf = (promise: unknown) =>
  Promise.resolve(promise).then(
    (value) => value,
    (error: { code: string }) => error.code,
  );
const codeNow = (tokens: AccessTokens) => {
  try {
    return tokens.get();
  } catch (error) {
    return (error as { code: string }).code;
  }
};

let bench: Bench;
beforeEach(() => (bench = new Bench()));

it('drops a token that the provider rejected, once: the next call gets a new one', async () => {
  void bench.tokens.get();
  await bench.issue('one');
  bench.tokens.rejected('another');
  expect(bench.tokens.get()).toBe('one');
  for (let i = 0; i < 10; i++) bench.tokens.rejected('one');
  const next = bench.tokens.get();
  expect(bench.requests).toBe(2);
  await bench.issue('two');
  expect(await next).toBe('two');
  // Calls that were under way with the first one, and a provider that rejects whatever it is sent.
  bench.tokens.rejected('one');
  bench.tokens.rejected('two');
  expect([bench.tokens.get(), bench.requests]).toEqual(['two', 2]);
  bench.pass(30_000);
  bench.tokens.rejected('two');
  void bench.tokens.get();
  expect(bench.requests).toBe(3);
});

it('makes one request for a thousand calls that wait, and none for those after', async () => {
  const waiting = Array.from({ length: 1_000 }, () => bench.tokens.get());
  expect(bench.requests).toBe(1);
  await bench.issue('one');
  expect(new Set(await Promise.all(waiting.map((token) => Promise.resolve(token))))).toEqual(
    new Set(['one']),
  );
  for (let i = 0; i < 1_000; i++) expect(bench.tokens.get()).toBe('one');
  expect(bench.requests).toBe(1);
});

it('renews five minutes before the end, while calls go on with the old token', async () => {
  void bench.tokens.get();
  await bench.issue('old');
  bench.pass(3_300_000 - 1);
  expect([bench.tokens.get(), bench.requests]).toEqual(['old', 1]);
  bench.pass(1);
  expect([bench.tokens.get(), bench.tokens.get(), bench.requests]).toEqual(['old', 'old', 2]);
  await bench.issue('new');
  expect([bench.tokens.get(), bench.requests]).toEqual(['new', 2]);
});

it('renews a token of less than ten minutes after half of its life', async () => {
  void bench.tokens.get();
  await bench.issue('short', 60_000);
  bench.pass(29_999);
  expect([bench.tokens.get(), bench.requests]).toEqual(['short', 1]);
  bench.pass(1);
  expect([bench.tokens.get(), bench.requests]).toEqual(['short', 2]);
});

it('goes on with the old token until its end when the renewal fails, then rejects, then recovers', async () => {
  void bench.tokens.get();
  await bench.issue('old');
  bench.pass(3_300_000);
  expect(bench.tokens.get()).toBe('old');
  await bench.fail();
  expect(bench.failures).toEqual([['down', true]]);
  bench.pass(299_999);
  expect(bench.tokens.get()).toBe('old');
  await bench.fail();
  bench.pass(1);
  expect(codeNow(bench.tokens)).toBe('provider_credential_unavailable');
  bench.pass(2_000);
  const waiting = bench.tokens.get();
  await bench.fail();
  expect(await codeOf(waiting)).toBe('provider_credential_unavailable');
  expect(bench.failures.at(-1)).toEqual(['down', false]);
  bench.pass(4_000);
  const next = bench.tokens.get();
  await bench.issue('new');
  expect(await next).toBe('new');
});

it('pauses after a failure: one, two, four ... at most thirty seconds, and from one again after a success', async () => {
  for (const pause of [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    const waiting = codeOf(bench.tokens.get());
    await bench.fail();
    await waiting;
    const before = bench.requests;
    bench.pass(pause - 1);
    expect([codeNow(bench.tokens), bench.requests]).toEqual(['provider_credential_unavailable', before]);
    bench.pass(1);
  }
  const waiting = bench.tokens.get();
  await bench.issue('short', 1_000);
  await waiting;
  bench.pass(1_000);
  void codeOf(bench.tokens.get());
  await bench.fail();
  bench.pass(1_000);
  const requests = bench.requests;
  void codeOf(bench.tokens.get());
  expect(bench.requests).toBe(requests + 1);
});

it('does not trust a token past its end on either clock: a machine that slept, or a wall clock that was set back', async () => {
  void bench.tokens.get();
  await bench.issue('one');
  bench.wall += 3_600_000;
  const slept = bench.tokens.get();
  expect(slept).toBeInstanceOf(Promise);
  await bench.issue('two');
  expect(await slept).toBe('two');
  bench.wall -= 86_400_000;
  bench.monotonic += 3_600_000;
  expect(bench.tokens.get()).toBeInstanceOf(Promise);
});

it('counts the life of a token from before its request', async () => {
  void bench.tokens.get();
  bench.pass(10_000);
  await bench.issue('slow', 10_000);
  expect(bench.tokens.get()).toBeInstanceOf(Promise);
});
