import pg from 'pg';
import { OldRuns } from '../../src/regressions/old-runs.js';
import { createDatabase, type TestDatabase } from '../support/database.js';

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterEach(() => jest.restoreAllMocks());
afterAll(async () => {
  await client.end();
  await database.drop();
});

const idOf = (digit: number) => `0000000${digit}-0000-7000-8000-000000000000`;

const runs = async () =>
  (
    await database.query<{ run: string; runs: boolean }>(
      'SELECT run, server IS NOT NULL AS runs FROM gateway_run ORDER BY run',
    )
  ).map(({ run, runs }) => `${run[7]} ${runs ? 'runs' : 'has ended'}`);

it('takes runs for ended that were not counted for an hour, and removes them after a week, if nothing counts them meanwhile', async () => {
  const ages = ['1 minute', '2 hours', '2 hours', '8 days', '8 days'];
  for (const [i, age] of ages.entries())
    await database.query(
      `INSERT INTO gateway_run VALUES ($1, 5, now() - $2::interval, CASE WHEN $3 THEN NULL ELSE pg_postmaster_start_time() END)`,
      [idOf(i), age, i === 4],
    );
  const old = new OldRuns();
  const hours = jest.spyOn(performance, 'now');
  const now = performance.now();
  const sweep = async (hour: number) => {
    hours.mockReturnValue(now + hour * 3_600_001);
    await old.sweep(client);
  };
  // Seen for the first time: Postgres's clock may have jumped.
  await sweep(1);
  expect(await runs()).toEqual(['0 runs', '1 runs', '2 runs', '3 runs', '4 has ended']);
  // A process that had slept.
  await database.query('UPDATE gateway_run SET seq = 6 WHERE run = $1', [idOf(2)]);
  await sweep(1.5);
  expect(await runs()).toHaveLength(5);
  await sweep(2);
  expect(await runs()).toEqual(['0 runs', '1 has ended', '2 runs']);
});
