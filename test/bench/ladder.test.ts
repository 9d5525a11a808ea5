import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { startGateway } from '../../bench/contenders/postern.mjs';
import { Workplace } from '../../bench/workplace.mjs';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { patienceVariables } from '../support/patience.js';

const SERVER = resolve(__dirname, '../../bench/ladder/server.mjs');
const PATIENCE = resolve(__dirname, '../support/patience-preload.mjs');
const RESPONSE = JSON.stringify({ model: 'gpt-4o-mini', usage: { prompt_tokens: 1, completion_tokens: 2 } });

interface Running {
  port: number;
  headers: Record<string, string>;
  stop(): Promise<void>;
  printed(): string;
}

const provider = createServer((req, res) => {
  req.resume().on('end', () => res.setHeader('Content-Type', 'application/json').end(RESPONSE));
});
let workplace: Workplace;
let database: TestDatabase;
beforeEach(async () => {
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  database = await createDatabase();
  workplace = await Workplace.make({ gateway: null, load: null, others: null });
});
afterEach(async () => {
  await workplace.close();
  await database.drop();
  provider.close();
});

// Each rung leaves out what the ones before it did; these two have run what each of the five puts in place.
it.each([
  ['no journal', 1],
  ['no HttpService', 0],
])('the rung "%s" forwards calls and writes %i rows of one', async (name, rows) => {
  const { port } = provider.address() as AddressInfo;
  const bench = { workplace, provider: { port }, postgres: { createDatabase: () => database } };
  const gateway: Running = await startGateway(
    bench,
    name,
    ['--import', PATIENCE, SERVER, name],
    patienceVariables(),
  );
  const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...gateway.headers, 'Content-Type': 'application/json' },
    body: '{"model":"gpt-4o-mini","messages":[]}',
  });
  expect([response.status, await response.text()]).toEqual([200, RESPONSE]);
  const count = async () =>
    (await database.query<{ count: number }>('SELECT count(*)::int FROM request_log'))[0]!.count;
  await eventually(async () => (await count()) === rows);
  await gateway.stop();
  expect(await count()).toBe(rows);
  const printed = gateway.printed().split('\n');
  expect(printed).toEqual([
    expect.stringMatching(/^ready on /),
    expect.stringMatching(/^shown only once: /),
    '',
  ]);
});
