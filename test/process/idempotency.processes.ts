import { createDatabase, type TestDatabase } from '../support/database.js';
import { deferred } from '../support/deferred.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { withFault } from '../support/kill-rounds.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { setPatience } from '../support/patience.js';
import { FULL } from '../support/scale.js';
import { send } from '../support/site.js';
import { Workplace } from '../support/workplace.js';

// `npm run test:faults` runs this too.
setPatience(20);

let database: TestDatabase;
let workplaces: Workplace[];
let provider: RawProvider;
let key: string;

const MASTER_KEY = Buffer.alloc(32, 5).toString('base64');

beforeAll(async () => {
  database = await createDatabase();
  workplaces = [await Workplace.make()];
  provider = await RawProvider.start(() => {});
  const gateway = await startTestGateway({ MASTER_KEY }, database);
  key = await gateway.createKey({ idempotency: 'replay' });
  await gateway.stop();
});
afterAll(async () => {
  for (const workplace of workplaces) await workplace.remove();
  await provider.stop();
  await database.drop();
});

async function start(workplace: Workplace, fault: Record<string, string> = {}) {
  const gateway = workplace.gateway({
    DATABASE_URL: database.url,
    PROVIDER_URL: provider.url,
    MASTER_KEY,
    ...fault,
  });
  return { gateway, url: await gateway.ready() };
}

const call = (url: string, name: string) => send(url, key, [`Idempotency-Key: ${name}`]);

const nameOf = ({ headers }: { headers: [string, string][] }) =>
  headers.find(([name]) => name === 'Idempotency-Key')![1];
const callsOf = (name: string) => provider.requests.filter((req) => nameOf(req) === name).length;

/** Where the process dies, and what a repeat then gets: its own first call, the stored answer, or an unknown outcome. */
type Death = [name: string, at: string, deed: string, then: 'runs' | 'replayed' | 'unknown'];
const OFTEN: Death[] = [
  ['before the claim', 'claim', 'kill-before', 'runs'],
  ['claimed, before it is forwarded', 'append:B', 'kill-after', 'unknown'],
  ['after the head went out', 'head', 'kill-after', 'unknown'],
  ['before the answer is stored', 'store', 'kill-before', 'unknown'],
];
/** Between those, for `npm run test:faults`. */
const SELDOM: Death[] = [
  ['claimed, before it is on record', 'append:B', 'kill-before', 'unknown'],
  ['before the head goes out', 'head', 'kill-before', 'unknown'],
  ['before the end is on record', 'append:E', 'kill-before', 'unknown'],
  ['after the end is on record', 'append:E', 'kill-after', 'unknown'],
];
const DEATHS = FULL ? [...OFTEN, ...SELDOM] : OFTEN;

/** What the first test started, for the next one to kill. */
let started: Awaited<ReturnType<typeof start>>;

it('never makes a call twice, wherever its process is killed', async () => {
  provider.script = async (req) => {
    await req.body;
    req.socket.write(answer('200 OK', ['Content-Type: text/plain'], nameOf(req)));
  };
  // All at the same time, so that the leases of the dead run out together.
  await Promise.all(
    DEATHS.map(async ([name, at, deed]) => {
      const workplace = await Workplace.make();
      workplaces.push(workplace);
      const { gateway, url } = await start(workplace, withFault({ at, do: deed }));
      const client = await call(url, name.replaceAll(/\W+/g, '-'));
      await client.answer().catch(() => null);
      client.destroy();
      expect((await gateway.process.ended).signal).toBe('SIGKILL');
    }),
  );
  const before = new Map(DEATHS.map(([name]) => [name, callsOf(name.replaceAll(/\W+/g, '-'))]));
  started = await start(workplaces[0]!);
  const { url } = started;
  const found = await Promise.all(
    DEATHS.map(async ([name]) => {
      const id = name.replaceAll(/\W+/g, '-');
      const client = await call(url, id);
      const reply = await client.answer();
      client.destroy();
      const code = reply.header('x-gateway-error');
      const then =
        code === 'idempotency_outcome_unknown'
          ? 'unknown'
          : reply.body.toString() !== id
            ? `${reply.status} ${code}`
            : reply.header('idempotent-replayed') === 'true'
              ? 'replayed'
              : 'runs';
      return [name, callsOf(id) - before.get(name)!, then];
    }),
  );
  expect(found).toEqual(DEATHS.map(([name, , , then]) => [name, then === 'runs' ? 1 : 0, then]));
  expect(Math.max(...DEATHS.map(([name]) => callsOf(name.replaceAll(/\W+/g, '-'))))).toBe(1);
});

it('gives the stored response after a kill and a restart, and has an unknown outcome for a call that was killed in flight', async () => {
  const goOn = deferred();
  provider.script = async (req) => {
    await req.body;
    if (nameOf(req) === 'in-flight') await goOn.promise;
    req.socket.write(answer('200 OK', [], `${Math.random()}`));
  };
  const killed = started;
  const client = await call(killed.url, 'kept');
  const first = await client.answer();
  client.destroy();
  await eventually(async () => {
    const rows = await database.query(
      'SELECT 1 FROM idempotency_record WHERE answer IS NOT NULL AND call_id = $1',
      [first.header('x-gateway-request-id')],
    );
    return rows.length > 0;
  });
  const inFlight = await call(killed.url, 'in-flight');
  await eventually(() => callsOf('in-flight') === 1);
  await killed.gateway.process.kill();
  inFlight.destroy();
  goOn.resolve();

  const next = await start(workplaces[0]!);
  // As if its lease had run out and been seen so; the test before waits for that.
  await database.query("UPDATE idempotency_record SET lease_until = '-infinity' WHERE answer IS NULL");
  const repeat = await (await call(next.url, 'kept')).answer();
  expect([repeat.body.equals(first.body), repeat.header('idempotent-replayed')]).toEqual([true, 'true']);
  const unknown = await (await call(next.url, 'in-flight')).answer();
  expect([unknown.status, unknown.header('x-gateway-error'), unknown.header('x-should-retry')]).toEqual([
    409,
    'idempotency_outcome_unknown',
    'false',
  ]);
  expect([callsOf('kept'), callsOf('in-flight')]).toEqual([1, 1]);
  await next.gateway.stop();
});
