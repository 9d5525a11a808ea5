import { eventually } from '../support/eventually.js';
import type { LogRowView } from '../support/gateway.js';
import { never } from '../support/never.js';
import { type RawClient, request } from '../support/raw-client.js';
import { chunk, type ReceivedRequest } from '../support/raw-provider.js';
import { echo, Wire } from '../support/wire.js';

let wire: Wire;
beforeAll(async () => {
  wire = await Wire.start();
});
afterAll(() => wire.stop());
beforeEach(() => wire.gateway.database.query('TRUNCATE request_log'));

const CALL = 'POST /v1/chat/completions';
const HEAD = 'HTTP/1.1 200 OK\r\n';

async function outcomes(count: number): Promise<unknown[]> {
  const rows = await eventually(async () => {
    const found = await wire.gateway.database.query<LogRowView>('SELECT outcome, status FROM request_log');
    return found.length === count && found;
  });
  return rows.map(({ outcome, status }) => [outcome, status]).sort();
}

type Moment = (client: RawClient, req: ReceivedRequest) => Promise<unknown>;

const PHASES: [
  phase: string,
  headers: string[],
  body: string,
  script: string,
  moment: Moment,
  status: unknown,
][] = [
  ['before the head', [], '{}', '', (_, req) => req.body, null],
  ['after the head', [], '{}', `${HEAD}Content-Length: 9\r\n\r\n`, (client) => client.head(), 200],
  ['amid a length', [], '{}', `${HEAD}Content-Length: 9\r\n\r\nhalf`, (client) => client.head(), 200],
  [
    'amid chunks',
    [],
    '{}',
    `${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunk('half').toString()}`,
    (client) => client.head(),
    200,
  ],
  ['amid an unframed answer', [], '{}', `${HEAD}\r\nhalf`, (client) => client.head(), 200],
  ['amid an upload in chunks', ['Transfer-Encoding: chunked'], '1\r\na\r\n', '', nothing, null],
  ['amid an upload with a length', ['Content-Length: 900000'], 'a', '', nothing, null],
  [
    'amid an upload and the answer to it',
    ['Transfer-Encoding: chunked'],
    '1\r\na\r\n',
    `${HEAD}Content-Length: 9\r\n\r\nhalf`,
    (client) => client.head(),
    200,
  ],
];

async function nothing() {}

describe.each(['end', 'resetAndDestroy', 'destroy'] as const)('a client that leaves by %s', (leave) => {
  it.each(PHASES)(
    '%s takes the call to the provider with it',
    async (_, headers, body, script, moment, status) => {
      const arrived = new Promise<ReceivedRequest>((seen) => {
        wire.provider.script = async (req) => {
          seen(req);
          req.socket.write(script);
          await req.closed;
        };
      });
      const client = await wire.connect();
      client.send(request(CALL, [wire.auth, ...headers], body));
      const req = await arrived;
      await moment(client, req);
      client.socket[leave]();
      await req.closed;
      expect(await outcomes(1)).toEqual([['client_aborted', status]]);
      client.destroy();
    },
  );
});

never('the call that runs ends with its client, and no request behind it is forwarded', async () => {
  const seen = wire.provider.requests.length;
  const arrived = new Promise<ReceivedRequest>((resolve) => {
    wire.provider.script = async (req) => {
      resolve(req);
      await req.closed;
    };
  });
  const client = await wire.connect();
  client.send(request(CALL, [wire.auth], '{}'));
  client.send(request('GET /v1/models', [wire.auth]));
  client.send(request(CALL, [wire.auth, 'Transfer-Encoding: chunked'], '1\r\na\r\n'));
  const req = await arrived;
  await req.body;
  client.destroy();
  await req.closed;
  expect(await outcomes(1)).toEqual([['client_aborted', null]]);
  expect(wire.provider.requests.length - seen).toBe(1);
});

it('also when the provider takes nothing of the upload', async () => {
  const arrived = new Promise<ReceivedRequest>((seen) => {
    wire.provider.script = async (req) => {
      req.socket.pause();
      seen(req);
      await req.closed;
    };
  });
  const client = await wire.connect();
  // As much as the buffers on the way hold: behind a full one the gateway could not see that the client has left.
  client.send(request(CALL, [wire.auth, 'Content-Length: 50000000'], Buffer.alloc(100_000)));
  const req = await arrived;
  client.destroy();
  expect(await outcomes(1)).toEqual([['client_aborted', null]]);
  req.socket.resume();
  await req.closed;
});

it('no connection to the provider is opened for a call whose client has left', async () => {
  const leave = ['end', 'resetAndDestroy', 'destroy'] as const;
  const before = wire.provider.connections;
  const arrived: ReceivedRequest[] = [];
  wire.provider.script = async (req) => {
    arrived.push(req);
    req.socket.write(Buffer.from(/^X-Script: (.*)$/m.exec(req.head)![1]!, 'base64'));
    await req.closed;
  };
  const cases = PHASES.flatMap((phase) => leave.map((how) => [phase, how] as const));
  const clients = await Promise.all(
    cases.map(async ([[, headers, body, script]]) => {
      const client = await wire.connect();
      const encoded = Buffer.from(script).toString('base64');
      client.send(request(CALL, [wire.auth, `X-Script: ${encoded}`, ...headers], body));
      return client;
    }),
  );
  await eventually(() => arrived.length === cases.length);
  for (const [i, [[, , , script]]] of cases.entries()) if (script !== '') await clients[i]!.head();
  cases.forEach(([, how], i) => clients[i]!.socket[how]());
  await Promise.all(arrived.map((req) => req.closed));
  await outcomes(cases.length);
  wire.provider.script = echo;
  expect((await wire.call(CALL, [], '{}')).status).toBe(200);
  expect(wire.provider.connections - before).toBe(cases.length + 1);
  for (const client of clients) client.destroy();
});
