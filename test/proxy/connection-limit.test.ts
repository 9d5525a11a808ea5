import type { HttpAdapterHost } from '@nestjs/core';
import { loadEnv } from '../../src/config/env.js';
import type { Settings } from '../../src/config/settings.js';
import { ConnectionLimit, mostConnections } from '../../src/proxy/upstream/connection-limit.js';
import type { PooledCall } from '../../src/proxy/upstream/upstream-pool.js';
import { UpstreamPools } from '../../src/proxy/upstream/upstream-pools.js';
import { eventually } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';

let one: RawProvider;
let other: RawProvider;
let pools: UpstreamPools;
beforeAll(async () => {
  [one, other] = await Promise.all([RawProvider.start(reply), RawProvider.start(reply)]);
});
beforeEach(() => {
  const env = loadEnv({ NODE_ENV: 'test', DATABASE_URL: 'postgres://u:p@127.0.0.1:1/db' });
  const server = { address: () => null };
  const host = { httpAdapter: { servers: [server], getHttpServer: () => server } };
  pools = new UpstreamPools(env as Settings, host as unknown as HttpAdapterHost);
  Reflect.set(pools, 'limit', new ConnectionLimit(2));
});
afterEach(() => pools.close());
afterAll(() => Promise.all([one.stop(), other.stop()]));

async function reply({ body, socket }: Parameters<RawProvider['script']>[0]) {
  await body;
  socket.write(answer('200 OK', [], 'ok'));
}

class Call implements PooledCall {
  connection: PooledCall['connection'] = null;
  over = false;

  constructor(private readonly beforeEnd: (call: Call) => void = () => {}) {}

  onConnect() {}
  onHeaders(): boolean {
    this.beforeEnd(this);
    return true;
  }
  onData(): boolean {
    return true;
  }
  onComplete() {
    this.over = true;
  }
  onError() {
    this.over = true;
  }
}

function send(provider: RawProvider, call: Call): void {
  pools.for(provider.url).dispatch({ path: '/', method: 'GET' }, call);
}

const OPTIONS = { path: '/', method: 'GET' } as const;

it('is the share of the descriptors that leaves as many for clients', () => {
  expect(mostConnections(1_024)).toBe(432);
  expect(mostConnections(65_536)).toBe(29_462);
  expect(mostConnections(32)).toBe(8);
  expect(mostConnections(Infinity)).toBe(Infinity);
});

it('is over all providers, and a call that has ended or is aborted makes place for another', async () => {
  const [first, second] = [pools.for(one.url), pools.for(other.url)];
  expect([first.reserve(), second.reserve(), first.reserve(), second.reserve()]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  second.cancelReservation();
  expect(first.reserve()).toBe(true);

  const ended = new Call();
  const aborted = new Call((call) => call.connection!.abort());
  first.dispatch(OPTIONS, ended);
  first.dispatch(OPTIONS, aborted);
  expect(first.reserve()).toBe(false);
  await eventually(() => ended.over && aborted.over && first.reserve());
  expect(second.reserve()).toBe(true);
  expect(first.reserve()).toBe(false);
});

it('closes connections without a call where another provider needs one', async () => {
  const pool = pools.for(one.url);
  const calls = [new Call(), new Call()];
  for (const call of calls) {
    expect(pool.reserve()).toBe(true);
    send(one, call);
  }
  await eventually(() => pools.counts.idle === 2);
  const next = new Call();
  expect(pools.for(other.url).reserve()).toBe(true);
  send(other, next);
  await eventually(() => next.over);
  await eventually(() => pools.counts.connected === 2);
  expect(pool.counts.idle).toBe(1);
});
