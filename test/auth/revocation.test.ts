import type { Request } from 'express';
import { KeyChangesService } from '../../src/auth/key-changes.service.js';
import { KeyCache } from '../../src/auth/key-cache.js';
import { KeyLookupService } from '../../src/auth/key-lookup.service.js';
import { isWellFormedKey, generateKey } from '../../src/keys/key-secret.js';
import { eventually, soon, timePasses } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { answer, RawProvider } from '../support/raw-provider.js';

describe('one gateway', () => {
  let provider: RawProvider;
  let replicas: TestGateway[];

  beforeAll(async () => {
    provider = await RawProvider.start(async (req) => {
      await req.body;
      req.socket.write(answer('200 OK', [], 'ok'));
    });
    const first = await startTestGateway({ PROVIDER_URL: provider.url });
    const others = [1, 2].map(() => startTestGateway({ PROVIDER_URL: provider.url }, first.database));
    replicas = [first, ...(await Promise.all(others))];
  });
  afterAll(async () => {
    for (const replica of [...replicas].reverse()) await replica.stop();
    await provider.stop();
  });

  async function statusAt(replica: TestGateway, key: string): Promise<number> {
    const response = await fetch(`${replica.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    await response.arrayBuffer();
    return response.status;
  }

  const statuses = (key: string) => Promise.all(replicas.map((replica) => statusAt(replica, key)));

  async function issue(): Promise<{ id: string; key: string }> {
    const made = await replicas[0]!.admin<{ id: string; key: string }>('POST', '/keys', {
      team: 'default',
      name: `key-${Math.random()}`,
    });
    // Every replica keeps it from now on.
    expect(await statuses(made.key)).toEqual([200, 200, 200]);
    return made;
  }

  /** Worst time over the replicas from the change to the first rejection, in ms. */
  async function rejectedEverywhere(key: string): Promise<number> {
    const from = performance.now();
    await Promise.all(replicas.map((replica) => soon(async () => (await statusAt(replica, key)) === 401)));
    return performance.now() - from;
  }

  it('ends a key on every replica', async () => {
    const forgetting = replicas.map(({ gateway }) => jest.spyOn(gateway.app.get(KeyCache), 'forget'));
    // Each is notified, and does not only find it at its next poll.
    const notified = (id: string) =>
      eventually(() => forgetting.every(({ mock }) => mock.calls.some(([one]) => one === id)));
    const { id, key } = await issue();
    // Of its creation, which comes with the same id.
    await notified(id);
    for (const forget of forgetting) forget.mockClear();
    await replicas[0]!.admin('POST', `/keys/${id}/revoke`);
    const worst = await rejectedEverywhere(key);
    await notified(id);
    process.stdout.write(`revocation seen by three replicas after ${worst.toFixed(0)} ms\n`);
  });

  it('ends a disabled key, and names each reason for which a key may not work', async () => {
    const { id, key } = await issue();
    await replicas[0]!.admin('PATCH', `/keys/${id}`, { disabled: true });
    await rejectedEverywhere(key);
    const response = await fetch(`${replicas[0]!.url}/v1/models`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(await response.text()).toContain('missing, malformed, unknown, disabled, expired or revoked');
  });

  it('ends the keys of a disabled team, and lets them in again', async () => {
    const { key } = await issue();
    const { database } = replicas[0]!;
    await database.query('UPDATE team SET disabled = true');
    await rejectedEverywhere(key);
    await database.query('UPDATE team SET disabled = false');
    await soon(async () => (await statuses(key)).every((status) => status === 200));
  });

  never('ends a key at its expiry without any change in Postgres', async () => {
    let expiry = 0;
    const issueFor = (ms: number) => {
      expiry = Date.now() + ms;
      const members = { team: 'default', name: `short-${ms}`, expires_at: new Date(expiry).toISOString() };
      return replicas[0]!.admin<{ key: string }>('POST', '/keys', members).catch(() => null);
    };
    // Every replica knows it while it is good; a busy machine may need longer for that.
    let ms = 700;
    let made = await issueFor(ms);
    while (made === null || (await statuses(made.key)).join() !== '200,200,200')
      made = await issueFor((ms *= 2));
    await eventually(() => Date.now() > expiry);
    expect(await statuses(made.key)).toEqual([401, 401, 401]);
  });

  it('does not trust the connection it listens on: a killed one is replaced and everything compared', async () => {
    const { id, key } = await issue();
    const { database } = replicas[0]!;
    // In one transaction, so that the change happens while nobody listens.
    await database.query(`
    WITH cut AS (
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name LIKE 'postern-changes%' AND datname = current_database()
    ) SELECT count(*) FROM cut`);
    await database.query('UPDATE gateway_key SET revoked_at = now() WHERE id = $1', [id]);
    await rejectedEverywhere(key);
  });

  it('learns of a change whose notification was swallowed', async () => {
    const { id, key } = await issue();
    const { database } = replicas[0]!;
    // What a transaction-pooling proxy does to LISTEN: the change is counted and nobody is notified.
    await database.query(`
    BEGIN;
    SET LOCAL session_replication_role = replica;
    UPDATE gateway_key SET revoked_at = now() WHERE id = '${id}';
    UPDATE change_counter SET value = value + 1 WHERE name = 'keys';
    COMMIT`);
    const worst = await rejectedEverywhere(key);
    process.stdout.write(`without notification after ${worst.toFixed(0)} ms\n`);
  });

  it('is not misled by what anybody else may notify', async () => {
    const { id, key } = await issue();
    const { database } = replicas[0]!;
    for (const payload of ['', ' ', 'x', 'x y', '1', '1 ', '-1 x', '1.5 x', `9 ${'x'.repeat(7_000)}`]) {
      for (const channel of ['postern_keys', 'postern_providers', 'postern_echo']) {
        await database.query('SELECT pg_notify($1, $2)', [channel, payload]);
      }
    }
    expect(await statuses(key)).toEqual([200, 200, 200]);
    await replicas[0]!.admin('POST', `/keys/${id}/revoke`);
    await rejectedEverywhere(key);
  });
});

describe('two gateways', () => {
  // passport is one object per process: a strategy found there by name belongs to whoever registered it last.
  let gateways: TestGateway[];

  beforeAll(async () => {
    gateways = [await startTestGateway(), await startTestGateway()];
  });
  afterAll(() => Promise.all(gateways.map((gateway) => gateway.stop())));

  async function statusOf({ url }: TestGateway, key: string): Promise<number> {
    const answer = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    await answer.arrayBuffer();
    return answer.status;
  }

  never('each gateway of a process accepts the keys of its own database, and no others', async () => {
    const statuses = gateways.flatMap((gateway) => gateways.map(({ key }) => statusOf(gateway, key)));
    // A known key gets as far as the missing provider.
    expect(await Promise.all(statuses)).toEqual([503, 401, 401, 503]);
  });

  never('calls that overlap each get their own verdict', async () => {
    const [one, other] = gateways as [TestGateway, TestGateway];
    const keys = Array.from({ length: 60 }, (_, i) =>
      i % 3 === 0 ? one.key : i % 3 === 1 ? other.key : 'x',
    );
    const statuses = await Promise.all(keys.map((key) => statusOf(one, key)));
    expect(statuses).toEqual(keys.map((key) => (key === one.key ? 503 : 401)));
  });
});

describe('unknown keys', () => {
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

  it('never lets a known key wait behind a flood of made-up ones', async () => {
    // Once it listens: until then, and once when it begins to, all keys are looked up again.
    const changes = gateway.gateway.app.get(KeyChangesService);
    await eventually(() => changes.verifiedAt > -Infinity);
    expect(await status(gateway.key)).toBe(200);
    const flood = Array.from({ length: 300 }, () => status(generateKey()));
    const known = await Promise.all(Array.from({ length: 50 }, () => status(gateway.key)));
    expect(known.filter((one) => one !== 200)).toEqual([]);
    const verdicts = new Set(await Promise.all(flood));
    expect([...verdicts].every((one) => one === 401 || one === 503)).toBe(true);
  });

  it('looks up only so many unknown keys of one address, and another address is not made to wait', async () => {
    const lookup = gateway.gateway.app.get(KeyLookupService);
    const flood = await Promise.allSettled(
      Array.from({ length: 500 }, () => Promise.resolve(lookup.find(generateKey(), from('192.0.2.1')))),
    );
    // Fifty a second; the flood may stand on both sides of a second's end.
    expect(flood.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(100);
    for (const one of flood) {
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'overloaded' });
    }
    expect(await lookup.find(generateKey(), from('192.0.2.2'))).toBeNull();
  });

  it('counts the addresses of one IPv6 network together', async () => {
    const lookup = gateway.gateway.app.get(KeyLookupService);
    const flood = await Promise.allSettled(
      Array.from({ length: 300 }, (_, i) =>
        Promise.resolve(lookup.find(generateKey(), from(`2001:db8::${i}`))),
      ),
    );
    expect(flood.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(100);
  });

  it('lets every valid key of an address through a flood of made-up ones from it, right after a start', async () => {
    const keys = [gateway.key, ...(await Promise.all(Array.from({ length: 11 }, () => gateway.createKey())))];
    const replica = await startTestGateway({ PROVIDER_URL: provider.url }, gateway.database);
    const lookup = replica.gateway.app.get(KeyLookupService);
    // They are loaded by the start, and not by their first use, which would have to wait beside the flood.
    await eventually(() => keys.every((key) => lookup.findCached(key) !== null));
    let isOver = false;
    const flood = async () => {
      while (!isOver) {
        const tries = Array.from({ length: 200 }, () =>
          Promise.resolve(lookup.find(generateKey(), from('127.0.0.1'))),
        );
        await Promise.allSettled(tries);
        await timePasses(20, 'the pace of the flood');
      }
    };
    const flooded = flood();
    const statuses: number[] = [];
    for (const key of keys) {
      const response = await fetch(`${replica.url}/v1/models`, {
        headers: { authorization: `Bearer ${key}` },
      });
      await response.arrayBuffer();
      statuses.push(response.status);
    }
    isOver = true;
    await flooded;
    await replica.stop();
    expect(statuses).toEqual(keys.map(() => 200));
  });

  never('takes none of a million near misses for a key', () => {
    const key = generateKey();
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
});
