import { createDatabase } from '../support/database.js';
import { eventually, timePasses } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { drained } from '../support/kill-rounds.js';
import { answer, RawProvider, type ReceivedRequest, type Script } from '../support/raw-provider.js';
import { Workplace } from '../support/workplace.js';

/** Fewer than the retries that a route always has, so that none of them is refused a retry. */
const CLIENTS = 8;
const CALLS = 1_500;
const ROUNDS = 3;

interface Row {
  call: string;
  provider: string;
  outcome: string;
  status: number | null;
}

const callOf = ({ headers }: ReceivedRequest) => headers.find(([name]) => name === 'idempotency-key')![1];

/** Serves calls, and now and then refuses them for a second. */
function moody(share: number): Script {
  let until = 0;
  return async (req) => {
    await req.body.catch(() => {});
    if (Date.now() > until && Math.random() < share) until = Date.now() + 300;
    if (Date.now() > until) req.socket.write(answer('200 OK', [], 'ok'));
    else req.socket.write(answer('429 X', ['Retry-After: 1'], 'later'));
  };
}

const SLOW: Script = async (req) => {
  await req.body.catch(() => {});
  await timePasses(50, 'the pace of the provider');
  req.socket.write(answer('200 OK', [], 'ok'));
};

it('under load and kill -9, a row for each attempt, and no failure that a healthy target could have responded to', async () => {
  const database = await createDatabase();
  const workplace = await Workplace.make();
  const providers: Record<string, RawProvider> = {
    a: await RawProvider.start(moody(0.02)),
    b: await RawProvider.start(moody(0.02)),
    c: await RawProvider.start(SLOW),
  };
  const settings = { DATABASE_URL: database.url, SHUTDOWN_GRACE_MS: '1000' };
  const first = await startTestGateway(settings, database);
  for (const [name, { url }] of Object.entries(providers))
    await first.admin('POST', '/providers', { name, url, secret: null });
  await first.admin('POST', '/providers', { name: 'gone', url: 'http://127.0.0.1:9', secret: null });
  const targets = ['gone', 'a', 'b', 'c'].map((provider) => ({ provider }));
  await first.admin('POST', '/routes', { name: 'main', targets, strategy: 'spread', max_attempts: 4 });
  const { key } = first;
  await first.stop();

  let next = 0;
  const seen: Record<string, number> = {};
  for (let round = 0; round < ROUNDS; round++) {
    const gateway = workplace.gateway(settings);
    const url = await gateway.ready();
    await drained(workplace);
    const isLast = round === ROUNDS - 1;
    const until = next + CALLS;
    let killed = false;
    const client = async () => {
      while (next < until && !killed) {
        const call = `call-${next++}`;
        const status = await fetch(`${url}/p/main/v1/chat/completions`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${key}`,
            'idempotency-key': call,
            'x-gateway-session': call,
            'content-type': 'application/json',
          },
          body: '{"model":"m"}',
        }).then(
          (response) => response.text().then(() => response.status),
          () => null,
        );
        if (status !== null || !killed) seen[String(status)] = (seen[String(status)] ?? 0) + 1;
      }
    };
    const clients = Array.from({ length: CLIENTS }, client);
    if (!isLast) {
      await eventually(() => next > until - CALLS / 2);
      killed = true;
      await gateway.process.kill();
    }
    await Promise.all(clients);
    if (isLast) expect(await gateway.stop()).toEqual({ code: 0, signal: null });
  }
  const last = workplace.gateway(settings);
  await last.ready();
  await drained(workplace);
  expect(await last.stop()).toEqual({ code: 0, signal: null });

  expect(Object.keys(seen)).toEqual(['200']);
  const requests = Object.entries(providers).flatMap(([name, { requests }]) =>
    requests.map((request) => `${callOf(request)} ${name}`),
  );
  // No call was sent to the same target twice.
  expect(new Set(requests).size).toBe(requests.length);
  const rows = await database.query<Row>(
    'SELECT idempotency_key AS call, provider, outcome, status FROM request_log',
  );
  const unsent = rows.filter(({ call, provider }) => !requests.includes(`${call} ${provider}`));
  // Nothing listens there, or the gateway was killed between the journal and the connection.
  expect(unsent.filter(({ provider, outcome }) => provider !== 'gone' && outcome !== 'interrupted')).toEqual(
    [],
  );
  const sent = rows.filter((row) => !unsent.includes(row)).map(({ call, provider }) => `${call} ${provider}`);
  expect(sent.sort()).toEqual(requests.sort());
  // A call has one row that is no retry, unless the gateway was killed between two attempts.
  const ends = rows.filter(({ outcome }) => outcome !== 'retried').map(({ call }) => call);
  expect(new Set(ends).size).toBe(ends.length);
  expect(new Set(rows.map(({ call }) => call)).size).toBe(ends.length);
  const retried = rows.length - ends.length;
  expect(retried).toBeGreaterThan(10);
  process.stdout.write(
    `${ends.length} calls, ${requests.length} requests at the providers, ${rows.length} rows, ${retried} retried\n`,
  );
  await workplace.remove();
  await database.drop();
}, 300_000);
