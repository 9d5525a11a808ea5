import { randomBytes } from 'node:crypto';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { timePasses } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { FULL } from '../support/scale.js';
import { unusedPort } from '../support/unused-port.js';
import { Workplace } from '../support/workplace.js';
import { Browser, poll, renew, signInSettings, startDevice, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';

/** Each kills a replica at one step. */
const ROUNDS = FULL ? 1_000 : 4;
/** Each kill is followed by the start of a process. */
const TIMEOUT_MS = FULL ? 28_800_000 : 240_000;
const STEPS = ['start', 'confirm', 'redeem', 'renew'] as const;

interface Replica {
  workplace: Workplace;
  gateway: GatewayProcess;
  url: string;
}

let provider: RawProvider;
let issuer: OpenIdProvider;
let database: TestDatabase;
let settings: Record<string, string>;
const replicas: Replica[] = [];

async function startReplica(workplace: Workplace, port: string): Promise<Replica> {
  const gateway = workplace.gateway({ ...settings, PORT: port });
  return { workplace, gateway, url: await gateway.ready() };
}

beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  database = await createDatabase();
  settings = {
    ...signInSettings(issuer, publicUrl),
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
    PROVIDER_KEY: 'sk-provider-secret-0123456789',
    ADMIN_TOKEN,
    MASTER_KEY: randomBytes(32).toString('base64'),
    LOG_LEVEL: 'fatal',
  };
  // The pages are on the first one, which nobody kills.
  replicas.push(await startReplica(await Workplace.make(), new URL(publicUrl).port));
  for (let i = 0; i < 2; i++) replicas.push(await startReplica(await Workplace.make(), '0'));
  const response = await fetch(`${publicUrl}/admin/v1/teams/default`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ sign_in: {} }),
  });
  expect(response.status).toBe(200);
});
afterAll(async () => {
  for (const { workplace } of replicas) await workplace.remove();
  await database.drop();
  await issuer.stop();
  await provider.stop();
});

/** Sends a request to a replica, which dies some milliseconds later. @returns the response if there was one */
async function whileItDies<T>(index: number, send: (replica: Replica) => Promise<T>): Promise<T | null> {
  const victim = replicas[index]!;
  const sent = send(victim).catch(() => null);
  await timePasses(Math.random() * 20, 'the death comes at any moment');
  await victim.gateway.process.kill();
  const response = await sent;
  replicas[index] = await startReplica(victim.workplace, '0');
  return response;
}

// After a death, the same step at another replica: at worst a person signs in once more, and nobody else is signed in.
it(
  `a sign-in survives the death of a replica at each of its steps, ${ROUNDS} times`,
  async () => {
    const [first] = replicas as [Replica];
    for (let round = 0; round < ROUNDS; round++) {
      const step = STEPS[round % STEPS.length];
      const index = 1 + (round % 2);
      const other = () => replicas[3 - index]!;
      const at = async <T>(
        name: (typeof STEPS)[number],
        send: (replica: Replica) => Promise<T>,
      ): Promise<T> =>
        step === name ? ((await whileItDies(index, send)) ?? (await send(other()))) : send(other());
      const started = await at('start', (replica) => startDevice(replica));
      const { user_code: userCode, device_code: device } = started.body;
      const browser = new Browser(first);
      const asked = await browser.identify(issuer, userCode, 'jane');
      // One that polls at this moment is told to wait, or gets its tokens.
      const confirmed = await at('confirm', (replica) => {
        const polled = replica === other() ? Promise.resolve() : poll(replica, device).catch(() => {});
        return Promise.all([polled, browser.confirm(asked, 'approve')]).then(([, page]) => page);
      });
      expect([step, confirmed.status]).toEqual([step, 200]);
      const tokens = await at('redeem', (replica) => poll(replica, device));
      expect([step, tokens.status]).toEqual([step, 200]);
      // Whoever did not get the response gets the same tokens again.
      expect((await poll(other(), device)).access_token).toBe(tokens.access_token);
      const renewed = await at('renew', (replica) => renew(replica, tokens.refresh_token!));
      expect([step, renewed.status]).toEqual([step, 200]);
      expect((await renew(other(), tokens.refresh_token!)).access_token).toBe(renewed.access_token);
      for (const replica of replicas) expect(await statusWith(replica, renewed.access_token!)).toBe(200);
      if (FULL && (round + 1) % 50 === 0) process.stdout.write(`${round + 1} kills, each sign-in survived\n`);
    }
    const people = await database.query('SELECT subject FROM person');
    expect(people).toEqual([{ subject: 'jane' }]);
    const [keys] = await database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM gateway_key WHERE origin = 'sign_in'`,
    );
    expect(keys).toEqual({ count: 1 });
  },
  TIMEOUT_MS,
);
