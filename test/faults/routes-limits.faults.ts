import { JSON_TYPE, usageResponse } from '../limits/limited-gateway.js';
import { eventually, timePasses } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { RawClient, request } from '../support/raw-client.js';
import { answer, RawProvider, type ReceivedRequest, type Script } from '../support/raw-provider.js';

/** Fewer than the retries that a route always has. */
const CLIENTS = 4;
const CALLS = 30;
/** Names of the model at each target; null: as the client sends it. */
const TARGETS = { a: null, b: 'm-of-b', c: null, d: 'm-of-d' } as const;
type Name = keyof typeof TARGETS;
const NAMES = Object.keys(TARGETS) as Name[];
const DEAD = 'http://127.0.0.1:9';

const USAGE = usageResponse({ input: 1_000, output: 100 });
const serves: Script = async ({ body, socket }) => {
  await body.catch(() => {});
  socket.write(answer('200 OK', JSON_TYPE, USAGE));
};
const after =
  (respond: (socket: ReceivedRequest['socket']) => void): Script =>
  async ({ body, socket }) => {
    await body.catch(() => {});
    respond(socket);
  };

/** What a target does; `lies`: its response ends the call, because it may have run. */
const MOODS: Record<string, { script: Script; lies: boolean }> = {
  killed: { script: serves, lies: false },
  slow: {
    script: async (req) => {
      await timePasses(100, 'the pace of the provider');
      return serves(req);
    },
    lies: false,
  },
  limited: {
    script: after((socket) => socket.write(answer('429 X', ['Retry-After: 1'], 'later'))),
    lies: false,
  },
  overloaded: { script: after((socket) => socket.write(answer('529 X', [], 'later'))), lies: false },
  truncating: {
    script: after((socket) => socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"usa`)),
    lies: true,
  },
  'wrong in length': {
    script: after((socket) => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n${USAGE}`)),
    lies: true,
  },
  'no HTTP': { script: after((socket) => socket.end('\x16\x03garbage\r\n\r\n')), lies: true },
  closing: { script: after((socket) => socket.end()), lies: true },
};
const ERROR_BODY = '{"error":{"message":"no capacity"}}';

interface Row {
  call: string;
  provider: string;
  outcome: string;
  status: number | null;
}

it('with limits on, no client sees a failure that another target could have responded to, and the books agree', async () => {
  const gateway = await startTestGateway();
  const providers = {} as Record<Name, RawProvider>;
  for (const name of NAMES) {
    providers[name] = await RawProvider.start(serves);
    const { url } = providers[name];
    await gateway.admin('POST', '/providers', { name, url, secret: `sk-of-${name}-0123456789` });
    const model = TARGETS[name] ?? 'm';
    await gateway.admin('POST', '/prices', { catalog: name, model, input: '3', output: '15' });
  }
  const targets = NAMES.map((provider) => ({
    provider,
    ...(TARGETS[provider] !== null && { models: { m: TARGETS[provider] } }),
  }));
  let number = 0;
  // Health belongs to a route: a new one for each mood, so that no target still rests.
  let route = '';
  const renew = async () => {
    route = `main-${number}`;
    await gateway.admin('POST', '/routes', { name: route, targets, strategy: 'spread', max_attempts: 4 });
  };
  const { id, key } = await gateway.admin<{ id: string; key: string }>('POST', '/keys', {
    team: 'default',
    name: 'limited',
    limits: { requests_per_minute: 100_000, tokens_per_minute: 1_000_000_000, concurrent_requests: CLIENTS },
    budgets: [{ usd: '1000', period: 'total' }],
  });

  const bodies = new Map<string, string>();
  const results = new Map<string, string>();
  const call = async () => {
    const name = `call-${++number}`;
    const body = `{"n":${number},  "model" : "m","text":"\\u00e9 é","max_tokens":200,"f":1.0}`;
    bodies.set(name, body);
    const client = await RawClient.connect(gateway.port);
    client.send(
      request(
        `POST /p/${route}/v1/chat/completions`,
        [
          `Authorization: Bearer ${key}`,
          `Idempotency-Key: ${name}`,
          `x-gateway-session: ${name}`,
          ...JSON_TYPE,
        ],
        body,
      ),
    );
    const reply = await client.answer().catch(() => null);
    client.destroy();
    results.set(name, reply === null ? 'cut' : `${reply.status} ${reply.body.toString()}`);
  };
  /** The moods in which each target got each call. */
  const seen: { call: string; target: Name; lies: boolean; req: ReceivedRequest }[] = [];
  let wrongBytes = 0;
  const behave = (target: Name, script: Script, lies: boolean) => {
    providers[target].script = async (req) => {
      const header = req.headers.find(([name]) => name === 'Idempotency-Key')![1];
      seen.push({ call: header, target, lies, req });
      const { bytes } = await req.body;
      const model = TARGETS[target];
      const sent = bodies.get(header)!;
      const expected = model === null ? sent : sent.replace('"model" : "m"', `"model" : "${model}"`);
      if (!bytes.equals(Buffer.from(expected))) wrongBytes++;
      return script(req);
    };
  };
  for (const target of NAMES) behave(target, serves, false);
  const load = async () => {
    await renew();
    const until = number + CALLS;
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        while (number < until) await call();
      }),
    );
  };
  await load();
  for (const target of NAMES) {
    for (const [mood, { script, lies }] of Object.entries(MOODS)) {
      behave(target, script, lies);
      if (mood === 'killed')
        await gateway.admin('PATCH', `/providers/${target}`, {
          url: DEAD,
          secret: `sk-of-${target}-0123456789`,
        });
      await load();
      if (mood === 'killed') {
        const { url } = providers[target];
        await gateway.admin('PATCH', `/providers/${target}`, { url, secret: `sk-of-${target}-0123456789` });
      }
      behave(target, serves, false);
    }
    behave(
      target,
      after((socket) => socket.write(answer('200 OK', JSON_TYPE, ERROR_BODY))),
      false,
    );
    await load();
    behave(target, serves, false);
  }

  // A failure only where a target may have run the call, and then no other target got it.
  const requests = new Map<string, typeof seen>();
  for (const one of seen) requests.set(one.call, [...(requests.get(one.call) ?? []), one]);
  const served = [`200 ${USAGE}`, `200 ${ERROR_BODY}`];
  const failed = [...results].filter(([, result]) => !served.includes(result));
  expect(failed.filter(([name]) => requests.get(name)?.at(-1)?.lies !== true)).toEqual([]);
  expect([...requests.values()].filter((all) => all.slice(0, -1).some(({ lies }) => lies))).toEqual([]);
  expect(seen.every(({ req, target }) => req.head.includes(`Bearer sk-of-${target}-0123456789`))).toBe(true);
  expect(wrongBytes).toBe(0);
  expect(failed.length).toBeGreaterThan(0);
  expect(seen.length).toBeGreaterThan(number);
  const twice = [...requests.values()].filter(
    (all) => new Set(all.map(({ target }) => target)).size < all.length,
  );
  expect(twice).toEqual([]);

  // A row for each request at a provider, and for each connection that was not made.
  let rows: Row[] = [];
  await eventually(async () => {
    rows = await gateway.database.query<Row>(
      'SELECT idempotency_key AS call, provider, outcome, status FROM request_log',
    );
    return rows.filter(({ outcome }) => outcome !== 'retried').length === number;
  });
  const atProviders = seen.map(({ call: name, target }) => `${name} ${target}`);
  const unsent = rows.filter(({ call: name, provider }) => !atProviders.includes(`${name} ${provider}`));
  expect(unsent.filter(({ outcome, status }) => outcome !== 'retried' || status !== null)).toEqual([]);
  const sent = rows
    .filter((row) => !unsent.includes(row))
    .map(({ call: name, provider }) => `${name} ${provider}`);
  expect(sent.toSorted()).toEqual(atProviders.toSorted());

  // What was spent is the sum of the charges, and nothing is held any more.
  const [books] = await eventually(async () => {
    const found = await gateway.database.query<{ charged: string; spent: string; held: string }>(
      `SELECT (SELECT (sum(charge_usd) * 1000000000)::bigint::text FROM request_log WHERE key_id = $1) AS charged,
              sum(spent)::text AS spent, sum(held)::text AS held
       FROM limit_meter JOIN limit_rule r ON r.id = rule_id WHERE r.scope_id = $1 AND r.resource = 'usd'`,
      [id],
    );
    return found[0]!.spent === found[0]!.charged && found;
  });
  expect(BigInt(books!.spent)).toBeGreaterThan(0n);
  await eventually(async () => {
    const { data } = await gateway.admin<{ data: { resource: string; held: string | number }[] }>(
      'GET',
      `/limits?key=${id}`,
    );
    return data
      .filter(({ resource }) => resource === 'concurrent_requests')
      .every(({ held }) => Number(held) === 0);
  });
  process.stdout.write(
    `${number} calls, ${seen.length} requests at four providers, ${rows.length} rows, ${unsent.length} without a connection, ` +
      `${failed.length} failures, each of a call that a target may have run; spent ${Number(books!.spent) / 1e9} USD, the sum of the charges\n`,
  );
  await gateway.stop();
}, 400_000);
