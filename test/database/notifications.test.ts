import pg from 'pg';
import { ChangeFeed } from '../../src/database/change-feed.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

/*
 * A replica that is not notified finds a change at its next poll, so other tests would not see that a notification is missing,
 * or not heard.
 */

const subscribe = jest.spyOn(ChangeFeed.prototype, 'subscribe');
const listen = jest.spyOn(ChangeFeed.prototype, 'listen');

let postern: TestGateway;
let client: pg.Client;
let notified: string[] = [];
beforeAll(async () => {
  postern = await startTestGateway();
  client = new pg.Client({ connectionString: postern.database.url });
  client.on('notification', ({ channel, payload }) => notified.push(`${channel} ${payload ?? ''}`));
  await client.connect();
  for (const channel of [...counters().map((counter) => `postern_${counter}`), ...channels()])
    await client.query(`LISTEN ${channel}`);
  holdPolls();
});
beforeEach(() => void (notified = []));
afterAll(async () => {
  await client.end();
  await postern.stop();
});

interface Inner {
  pause: (ms: number) => Promise<void>;
  channels: Map<string, unknown>;
}
let held = 0;
/** The feed polls only when it is woken. */
function holdPolls(): void {
  const feed = postern.gateway.app.get<ChangeFeed, Inner>(ChangeFeed);
  // An entry of the audit log leads to a poll, of all.
  feed.channels.delete('postern_audit');
  const pause = feed.pause.bind(feed);
  feed.pause = () => {
    held++;
    return pause(600_000);
  };
}
/** The feed has read everything, and waits for a notification. */
async function feedWaits(): Promise<void> {
  const before = held;
  postern.gateway.app.get(ChangeFeed).poll(false);
  await eventually(() => held > before);
}

const counters = () => subscribe.mock.calls.map(([counter]) => counter).sort();
const channels = () => listen.mock.calls.map(([channel]) => channel).sort();

const idOf = async (path: string, body: object) =>
  (await postern.admin<{ id: string }>('POST', path, body)).id;
const key = (more: object = {}) => idOf('/keys', { team: 'default', name: `key-${Math.random()}`, ...more });
async function found(text: string, values: unknown[] = []): Promise<string> {
  return (await client.query<{ id: string }>(text, values)).rows[0]!.id;
}

/** By the name of a counter: a row that it counts, and a change of that row. `keys` is counted by two functions. */
const CHANGES: [string, string, () => Promise<string>][] = [
  ['keys', 'gateway_key SET disabled = NOT disabled', key],
  [
    'keys',
    'person SET ended_at = now()',
    () =>
      found(`INSERT INTO person (id, issuer, subject, name)
             VALUES (gen_random_uuid(), 'https://login.invalid', 'jane', 'Jane') RETURNING id`),
  ],
  [
    'limits',
    'limit_rule SET amount = amount + 1',
    async () =>
      found('SELECT id FROM limit_rule WHERE scope_id = $1', [
        await key({ limits: { requests_per_minute: 60 } }),
      ]),
  ],
  [
    'policies',
    'policy SET enabled = NOT enabled',
    () => idOf('/policies', { name: 'dlp', url: 'http://127.0.0.1:9', secret: `whsec_${'A'.repeat(43)}=` }),
  ],
  [
    'prices',
    `price SET note = 'x'`,
    () => idOf('/prices', { catalog: 'default', model: 'm', input: '1', output: '10' }),
  ],
  [
    'providers',
    `provider SET url = url || '/v1'`,
    () => idOf('/providers', { name: 'changed', url: 'http://127.0.0.1:9', secret: null }),
  ],
  [
    'routes',
    'route SET version = version + 1',
    () => idOf('/routes', { name: 'main', targets: [{ provider: 'default' }] }),
  ],
  [
    'trusts',
    'trust SET enabled = NOT enabled',
    async () =>
      idOf('/trusts', {
        ...{ name: 'ci', key: await key(), audience: 'gateway', issuer: 'http://127.0.0.1:9' },
        claims: { sub: ['job'] },
      }),
  ],
];

it('every counter has a cache, and a case below', async () => {
  const { rows } = await client.query<{ name: string }>('SELECT name FROM change_counter');
  expect(rows.map(({ name }) => name).sort()).toEqual(counters());
  expect([...new Set(CHANGES.map(([counter]) => counter))]).toEqual(counters());
});

async function make(counter: string, change: string, id: string): Promise<bigint> {
  const counted = async () =>
    BigInt(
      (await client.query<{ value: string }>('SELECT value FROM change_counter WHERE name = $1', [counter]))
        .rows[0]!.value,
    );
  const before = await counted();
  await client.query('BEGIN');
  await client.query(`UPDATE ${change} WHERE id = $1`, [id]);
  // Counts what is counted at the commit; until then nobody else counts.
  await client.query('SET CONSTRAINTS ALL IMMEDIATE');
  const value = await counted();
  await client.query('COMMIT');
  expect(value).toBeGreaterThan(before);
  return value;
}

it.each(CHANGES)(
  'a change for %s is notified with its number, and read then: %s',
  async (counter, change, create) => {
    const id = await create();
    await feedWaits();
    const value = await make(counter, change, id);
    // A session gets its own notifications before the response to COMMIT.
    expect(notified).toContain(`postern_${counter} ${value} ${id}`);
    const feed = postern.gateway.app.get(ChangeFeed);
    await eventually(() => feed.reflects(counter, value));
  },
);

// The ends of calls: idempotency/rejections.test.ts. Recalls of limits: limits/ledger.test.ts.
it('an entry of the audit log is notified', async () => {
  expect(channels()).toEqual(['postern_audit', 'postern_idempotency', 'postern_limit_recall']);
  await key();
  // What was notified before comes before its answer.
  await client.query('SELECT');
  expect(notified).toContain('postern_audit ');
});
