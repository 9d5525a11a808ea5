import { createDays } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';

const PERSON = '01990000-0000-7000-8000-00000000f0f0';
const NAME = 'sso:lea@example.com';
const ALIAS = 'forgotten-00000000f0f0';

let postern: TestGateway;
beforeAll(async () => {
  postern = await startTestGateway();
});
afterAll(() => postern.stop());

const rows = <T extends object = Record<string, unknown>>(sql: string, values: unknown[] = []) =>
  postern.database.query<T>(sql, values);

async function forget(): Promise<number> {
  const response = await fetch(`${postern.url}/admin/v1/people/${PERSON}/forget`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: '{}',
  });
  await response.text();
  return response.status;
}

/** Calls by whom they name. */
const named = () =>
  rows<{ subject: string; calls: number }>(
    'SELECT subject, count(*)::int AS calls FROM request_log GROUP BY subject ORDER BY subject',
  );

it('forgets a person of many calls in several transactions, and goes on where a crash broke it off', async () => {
  const newKey = (name: string) => postern.admin<{ id: string }>('POST', '/keys', { team: 'default', name });
  const [{ id: key }, { id: old }, { id: other }] = [
    await newKey('own'),
    await newKey('old'),
    await newKey('other'),
  ];
  await rows(
    `INSERT INTO person (id, issuer, subject, name, email, ended_at)
     VALUES ($1, 'https://id.example.com', 'lea', 'Lea', 'lea@example.com', now())`,
    [PERSON],
  );
  await rows(`UPDATE gateway_key SET owner_id = 'sso:https://id.example.com#lea', owner = $2 WHERE id = $1`, [
    key,
    NAME,
  ]);
  // Of an earlier version, which knew only the name.
  await rows('UPDATE gateway_key SET owner = $2 WHERE id = $1', [old, NAME]);
  const now = new Date();
  await createDays(postern.database, now, Number(now) + 60_000);
  // Each call a millisecond after the one before.
  const insert = (keyId: string, subject: string, first: number, last: number) => `
    INSERT INTO request_log (id, started_at, team_id, key_id, provider, method, path, model, streamed, status, outcome,
      request_bytes, response_bytes, subject)
    SELECT gen_random_uuid(), '${now.toISOString()}'::timestamptz + i * interval '1 ms', team_id, id, 'default', 'POST',
      '/v1/chat/completions', 'm', false, 200, 'completed', 1, 1, '${subject}'
    FROM generate_series(${first}, ${last}) AS i, gateway_key WHERE id = '${keyId}'`;
  await rows(insert(key, NAME, 1, 10_001));
  await rows(insert(other, 'sso:kim@example.com', 1, 1));

  // Its connection is lost in the second transaction.
  await rows(`
    CREATE FUNCTION crash() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF EXISTS (SELECT FROM request_log WHERE subject = '${ALIAS}') THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
      END IF;
      RETURN NULL;
    END $$`);
  await rows('CREATE TRIGGER crash BEFORE UPDATE ON request_log FOR EACH STATEMENT EXECUTE FUNCTION crash()');
  expect(await forget()).toBeGreaterThanOrEqual(500);
  const kim = { subject: 'sso:kim@example.com', calls: 1 };
  expect(await named()).toEqual([{ subject: ALIAS, calls: 5_000 }, kim, { subject: NAME, calls: 5_001 }]);
  const person = 'SELECT name, email FROM person WHERE id = $1';
  expect(await rows(person, [PERSON])).toEqual([{ name: 'Lea', email: 'lea@example.com' }]);

  await rows('DROP TRIGGER crash ON request_log');
  // A call that is stored late, before those that were read: if it were found, each transaction would read all of them.
  await rows(`
    CREATE FUNCTION store_late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NOT EXISTS (SELECT FROM request_log WHERE started_at = '${now.toISOString()}') THEN
        ${insert(key, NAME, 0, 0)};
      END IF;
      RETURN NULL;
    END $$`);
  await rows(
    'CREATE TRIGGER store_late BEFORE UPDATE ON request_log FOR EACH STATEMENT EXECUTE FUNCTION store_late()',
  );
  expect(await forget()).toBe(200);
  expect(await named()).toEqual([{ subject: ALIAS, calls: 10_001 }, kim, { subject: NAME, calls: 1 }]);
  expect(await forget()).toBe(200);
  expect(await named()).toEqual([{ subject: ALIAS, calls: 10_002 }, kim]);
  expect(await rows(person, [PERSON])).toEqual([{ name: ALIAS, email: null }]);
  const owners = await rows('SELECT owner FROM gateway_key WHERE id = ANY ($1)', [[key, old, other]]);
  expect(owners.map(({ owner }) => owner).sort()).toEqual([null, `sso:${ALIAS}`, `sso:${ALIAS}`]);
  // Each transaction changed no more than that.
  const transactions = await rows<{ calls: number }>(
    'SELECT count(*)::int AS calls FROM request_log WHERE subject = $1 GROUP BY xmin::text ORDER BY calls DESC',
    [ALIAS],
  );
  expect(transactions).toEqual([{ calls: 5_000 }, { calls: 5_000 }, { calls: 1 }, { calls: 1 }]);
});
