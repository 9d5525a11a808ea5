import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { v7 as uuidv7 } from 'uuid';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { bareEnvironment } from '../support/process.js';

const ROOT = join(__dirname, '../..');

/** Runs the script without a terminal, as a pipe or a job does. */
const seed = (args: string[], env: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, ['scripts/seed-request-log.mjs', '--rows', '10', '--days', '1', ...args], {
    cwd: ROOT,
    env: { ...bareEnvironment(), ...env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });

describe('npm run seed:log', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(() => database.drop());
  const rows = async () =>
    (await database.query<{ count: number }>('SELECT count(*)::int AS count FROM request_log'))[0]!.count;

  it("does not write into the gateway's own database without --yes", () => {
    const { status, stdout, stderr } = seed(['--teams', '1']);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toBe(
      "This adds 10 made-up calls and 1 teams to the gateway's own database, for good. " +
        'Add --yes to do it, or set DATABASE_URL to a database to be thrown away.\n',
    );
  });

  it('writes into a database that is named for it, and with --yes into any', async () => {
    const { status, stdout } = seed(['--teams', '2'], { DATABASE_URL: database.url });
    expect([status, await rows()]).toEqual([0, 10]);
    expect(stdout).toContain('Try: ./postern usage --group-by team,day --limit 10');
    for (const table of ['usage_slot', 'usage_day'])
      await database.query(
        `INSERT INTO ${table} (slot, team_id, key_id, provider, calls, errors, calls_without_tokens, unpriced_calls, latency)
         VALUES (date_trunc('day', now(), 'UTC'), gen_random_uuid(), gen_random_uuid(), 'p', 10, 0, 0, 0, '{}')`,
      );
    expect(seed(['--teams', '2', '--yes'], { DATABASE_URL: database.url }).status).toBe(0);
    expect(await rows()).toBe(20);
    // The gateway adds up all rows again.
    expect(await database.query('SELECT FROM usage_slot UNION ALL SELECT FROM usage_day')).toHaveLength(0);
    expect(seed(['--maybe']).stderr).toContain('[--yes]');
  });

  it('fills what is there: keys, providers with their prices, budgets', async () => {
    await database.query(`UPDATE gateway_key SET disabled = true`);
    const [team, key, provider, price, rule] = Array.from({ length: 5 }, () => uuidv7());
    await database.query(`INSERT INTO team (id, name) VALUES ($1, 'ads')`, [team]);
    await database.query(`INSERT INTO gateway_key (id, team_id, name) VALUES ($1, $2, 'ci')`, [key, team]);
    await database.query(
      `INSERT INTO provider (id, name, url, catalog) VALUES ($1, 'groq', 'https://api.groq.com', 'groq')`,
      [provider],
    );
    await database.query(
      `INSERT INTO price (id, catalog, model, effective_from, input, output, source)
       VALUES ($1, 'groq', 'llama', to_timestamp(0), 1, 2, 'custom')`,
      [price],
    );
    await database.query(
      `INSERT INTO limit_rule (id, scope, scope_id, resource, period, amount) VALUES ($1, 'team', $2, 'usd', 'total', 1000000000)`,
      [rule, team],
    );
    const { status, stderr, stdout } = seed(['--rows', '1200'], { DATABASE_URL: database.url });
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain('Calls of 1 keys to 1 providers');
    const [sums] = await database.query<Record<string, number>>(
      `SELECT count(*)::int AS calls, count(DISTINCT status)::int AS statuses, count(provider_error_code)::int AS failed,
         count(DISTINCT session_id)::int AS sessions, (sum(cost_usd) * 1000000000)::bigint::text AS nano
       FROM request_log WHERE key_id = $1 AND team_id = $2 AND provider = 'groq' AND (cost_usd IS NULL OR price_id = $3)`,
      [key, team, price],
    );
    expect(sums!.calls).toBe(1_200);
    for (const name of ['failed', 'sessions']) expect(sums![name]).toBeGreaterThan(1);
    expect(sums!.statuses).toBeGreaterThan(2);
    expect(await database.query('SELECT spent FROM limit_meter WHERE rule_id = $1', [rule])).toEqual([
      { spent: sums!.nano },
    ]);
  });
});
