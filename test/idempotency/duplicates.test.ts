import { IdempotencyRecords } from '../../src/idempotency/idempotency-records.js';
import { PendingResponses } from '../../src/idempotency/pending-responses.service.js';
import { deferred } from '../support/deferred.js';
import { eventually, timePasses } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { setPatience } from '../support/patience.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { FULL } from '../support/scale.js';
import { essence, once, open } from './once.js';

// `npm run test:faults` runs this too.
setPatience(20);

const KEYS = FULL ? 200 : 60;
const DUPLICATES = 20;

let provider: RawProvider;
let replicas: TestGateway[];
let auth: string;

beforeAll(async () => {
  provider = await RawProvider.start(() => {});
  const env = { PROVIDER_URL: provider.url, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') };
  const first = await startTestGateway(env);
  const others = [1, 2].map(() => startTestGateway(env, first.database));
  replicas = [first, ...(await Promise.all(others))];
  auth = `Authorization: Bearer ${await first.createKey({ idempotency: 'replay' })}`;
});
afterAll(async () => {
  for (const replica of replicas.reverse()) await replica.stop();
  await provider.stop();
});
beforeEach(() => {
  provider.requests.length = 0;
});

/** Duplicates that have claimed in vain and wait. */
const waiting = () =>
  replicas.reduce((sum, { gateway }) => sum + gateway.app.get(PendingResponses).waiting, 0);

it(`calls the provider once for each of ${KEYS} keys that ${DUPLICATES} duplicates send over three replicas`, async () => {
  provider.script = async (req) => {
    await req.body;
    await timePasses(Math.random() * 30, 'the pace of the provider');
    const call = req.headers.find(([name]) => name === 'Idempotency-Key')![1];
    req.socket.write(answer('200 OK', ['Content-Type: text/plain'], `${call} ${Math.random()}`));
  };
  const calls = Array.from({ length: KEYS * DUPLICATES }, (_, i) => `duplicate-${i % KEYS}`);
  const essences = new Map<string, Set<string>>();
  let replayed = 0;
  const takeTurns = async () => {
    for (let i = calls.length; i > 0; i = calls.length) {
      const call = calls.pop()!;
      const reply = await once(replicas[i % 3]!, [auth, `Idempotency-Key: ${call}`]);
      essences.set(call, (essences.get(call) ?? new Set()).add(JSON.stringify(essence(reply))));
      if (reply.header('idempotent-replayed') === 'true') replayed++;
    }
  };
  // Each round of KEYS calls is under way before the one before it has ended.
  await Promise.all(Array.from({ length: 3 * KEYS }, takeTurns));
  expect(provider.requests.length).toBe(KEYS);
  expect(replayed).toBe(KEYS * (DUPLICATES - 1));
  expect([...essences.values()].map((seen) => seen.size)).toEqual(Array(KEYS).fill(1));
  expect([...essences.values()].every((seen) => [...seen][0]!.includes('200'))).toBe(true);
});

never(
  'a duplicate waits on another replica, and gets the response although no notification comes',
  async () => {
    const goOn = deferred();
    provider.script = async (req) => {
      await req.body;
      await goOn.promise;
      req.socket.write(answer('200 OK', [], 'late'));
    };
    const headers = [auth, 'Idempotency-Key: silent'];
    const first = await open(replicas[0]!, headers);
    await eventually(() => provider.requests.length === 1);
    const looks = jest.spyOn(replicas[1]!.gateway.app.get(IdempotencyRecords), 'states');
    const duplicate = await open(replicas[1]!, headers);
    await eventually(() => waiting() === 1 && looks.mock.results.length > 0);
    expect(await looks.mock.results[0]!.value).toMatchObject([{ stored: false }]);
    looks.mockRestore();
    await replicas[0]!.database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'postern-changes%'",
    );
    goOn.resolve();
    expect(essence(await duplicate.answer())).toEqual(essence(await first.answer()));
    expect(provider.requests.length).toBe(1);
  },
);

/** True if each replica listens again: it reads these tables once it does. */
async function everyReplicaListens(): Promise<boolean> {
  const [row] = await replicas[0]!.database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database()
       AND application_name LIKE 'postern-changes%' AND query ~ 'change_counter|gateway_run|audit_log'`,
  );
  return row!.n === replicas.length;
}

it.each(['200 OK', '500 No'])(
  'the end of a call is notified, %s, and duplicates need not ask for it',
  async (status) => {
    const goOn = deferred();
    provider.script = async (req) => {
      await req.body;
      await goOn.promise;
      req.socket.write(answer(status, []));
    };
    await eventually(everyReplicaListens);
    const headers = [auth, `Idempotency-Key: notified-${status.slice(0, 3)}`];
    const first = await open(replicas[0]!, headers);
    await eventually(() => provider.requests.length === 1);
    const answers = replicas[1]!.gateway.app.get<unknown, { timer?: NodeJS.Timeout }>(PendingResponses);
    delete answers.timer;
    const duplicate = await open(replicas[1]!, headers);
    clearTimeout(await eventually(() => answers.timer));
    goOn.resolve();
    expect((await duplicate.answer()).status).toBe(status === '200 OK' ? 200 : 409);
    await first.answer();
  },
);

it('a duplicate of a call whose response is not kept is asked to retry, and then runs it', async () => {
  const goOn = deferred();
  provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(answer(provider.requests.length === 1 ? '500 No' : '200 OK', []));
  };
  const headers = [auth, 'Idempotency-Key: unkept'];
  const first = await open(replicas[0]!, headers);
  await eventually(() => provider.requests.length === 1);
  const duplicates = await Promise.all([open(replicas[0]!, headers), open(replicas[2]!, headers)]);
  await eventually(() => waiting() === 2);
  goOn.resolve();
  expect((await first.answer()).status).toBe(500);
  for (const duplicate of duplicates) {
    const reply = await duplicate.answer();
    expect([reply.status, reply.header('x-gateway-error'), reply.header('retry-after')]).toEqual([
      409,
      'idempotency_in_progress',
      '1',
    ]);
    expect(reply.header('x-should-retry')).toBeUndefined();
  }
  expect(provider.requests.length).toBe(1);
  expect((await once(replicas[1]!, headers)).status).toBe(200);
  expect(provider.requests.length).toBe(2);
});

never('a duplicate that leaves takes nothing with it', async () => {
  const goOn = deferred();
  provider.script = async (req) => {
    await req.body;
    await goOn.promise;
    req.socket.write(answer('200 OK', [], 'kept'));
  };
  const headers = [auth, 'Idempotency-Key: leaver'];
  const first = await open(replicas[0]!, headers);
  await eventually(() => provider.requests.length === 1);
  const duplicate = await open(replicas[1]!, headers);
  await eventually(() => waiting() === 1);
  duplicate.destroy();
  goOn.resolve();
  expect((await first.answer()).body.toString()).toBe('kept');
  expect((await once(replicas[1]!, headers)).body.toString()).toBe('kept');
  expect(provider.requests.length).toBe(1);
  // Both responses left a row, the abandoned call none.
  const rows = () =>
    replicas[0]!.database.query("SELECT outcome FROM request_log WHERE idempotency_key = 'leaver'");
  await eventually(async () => (await rows()).length === 2);
});
