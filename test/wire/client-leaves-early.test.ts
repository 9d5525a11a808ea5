import pg from 'pg';
import { request } from '../support/raw-client.js';
import { eventually } from '../support/eventually.js';
import { Wire } from '../support/wire.js';

let wire: Wire;
let holder: pg.Client;

beforeAll(async () => {
  wire = await Wire.start();
  holder = new pg.Client({ connectionString: wire.gateway.database.url });
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await wire.stop();
});

/** How many sessions wait for a lock of ours: look-ups that are under way. */
async function heldLookUps(): Promise<number> {
  const { rows } = await holder.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted',
  );
  return rows[0]!.count;
}

it.each([
  ['without a body', 'GET /v1/models', []],
  ['with a short body', 'POST /v1/chat/completions', ['Content-Length: 2']],
  ['with a chunked body', 'POST /v1/chat/completions', ['Transfer-Encoding: chunked']],
])(
  'forwards nothing and ends when the client of a call %s leaves during its key look-up',
  async (_, line, headers) => {
    // A key nobody has asked for yet, so that no cache answers for it.
    const key = await wire.gateway.createKey({ endpoints: 'all' });
    const before = await heldLookUps();
    await holder.query('BEGIN; LOCK TABLE gateway_key IN ACCESS EXCLUSIVE MODE');
    const client = await wire.connect();
    client.send(request(line, [`Authorization: Bearer ${key}`, ...headers], headers.length ? '{}' : ''));
    await eventually(async () => (await heldLookUps()) > before);
    client.destroy();
    const { httpAdapter } = wire.gateway.gateway.app as unknown as { httpAdapter: { openRequests: number } };
    await eventually(() => httpAdapter.openRequests === 0);
    await holder.query('COMMIT');
    await wire.expectSound(0);
    expect(
      (await wire.gateway.database.query('SELECT 1 FROM request_log WHERE outcome <> $1', ['completed']))
        .length,
    ).toBe(0);
  },
);
