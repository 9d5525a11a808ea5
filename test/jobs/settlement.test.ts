import pg from 'pg';
import { DataSource } from 'typeorm';
import type { NewBudget } from '../../src/limit-rules/limit-rules.schema.js';
import { LimitRules } from '../../src/limit-rules/limit-rules.service.js';
import { NO_LIMITS } from '../../src/limit-rules/stored-rules.js';
import { NO_USAGE } from '../../src/bodies/usage/token-usage.js';
import { JobSettlement, type OpenJob } from '../../src/jobs/job-settlement.service.js';
import { JobChecks } from '../../src/jobs/job-checks.service.js';
import { awayFromMidnight } from '../support/away-from-midnight.js';
import { eventually } from '../support/eventually.js';
import { JobGateway } from './job-gateway.js';

let jobs: JobGateway;
beforeAll(async () => {
  await awayFromMidnight();
  jobs = await JobGateway.start();
});
afterAll(() => jobs.stop());

const BUDGETS = { budgets: [{ usd: '100.00', period: 'month', unpriced: 'allow' }] };
const BUDGET: NewBudget = {
  usd: '100.00',
  period: 'month',
  mode: 'block',
  alert_at: [],
  unpriced: 'reject',
  reservation: 'typical',
};
const usage = { input_tokens: 1_000, output_tokens: 200, total_tokens: 1_200 };
const created = (id: string) => ({ id, object: 'batch', status: 'validating' });
const completed = (id: string) => ({
  ...created(id),
  status: 'completed',
  request_counts: { completed: 1 },
  model: 'm',
  usage,
});

async function sums(keyId: string): Promise<{ charges: string; spent: string }> {
  const [row] = await jobs.postern.database.query<{ charges: string; spent: string }>(
    `SELECT (SELECT sum(charge_usd) FROM request_log WHERE key_id = $1) AS charges,
            (SELECT sum(spent)::numeric(18,0) / 1000000000 FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
             WHERE r.scope_id = $1)::numeric(18,9) AS spent`,
    [keyId],
  );
  return row!;
}

it('lowers the charge of a background response from what it had reserved to its cost', async () => {
  const { id: keyId, key } = await jobs.key({
    budgets: [{ usd: '100.00', period: 'month', reservation: 'worst', unpriced: 'allow' }],
  });
  const response = {
    id: 'resp_r',
    object: 'response',
    status: 'queued',
    background: true,
    model: 'm',
    usage: null,
  };
  const id = await jobs.create(key, '/v1/responses', response, {
    model: 'm',
    background: true,
    max_output_tokens: 10_000,
  });
  const reserved = (await jobs.row(id)).charge_usd;
  expect(Number(reserved)).toBeGreaterThanOrEqual(0.1);
  expect(await sums(keyId)).toEqual({ charges: reserved, spent: reserved });
  jobs.provider.paths.set('GET /v1/responses/resp_r', { json: { ...response, status: 'completed', usage } });
  // The client finds it first.
  await jobs.send(key, 'GET', '/v1/responses/resp_r');
  await eventually(async () => (await jobs.job(id))!.state === 'settled');
  expect(await jobs.row(id)).toMatchObject({
    cost_usd: '0.003000000',
    charge_usd: '0.003000000',
    prompt_tokens: 1_000,
  });
  const { charges, spent } = await sums(keyId);
  expect(spent).toBe(charges);
  expect((await jobs.row(id)).repaired_at).not.toBeNull();
});

it('what a reset gave back is not given back twice', async () => {
  const { id: keyId, key } = await jobs.key({
    budgets: [{ usd: '1.00', period: 'month', reservation: 'worst' }],
  });
  const response = {
    id: 'resp_c',
    object: 'response',
    status: 'queued',
    background: true,
    model: 'm',
    usage: null,
  };
  const id = await jobs.create(key, '/v1/responses', response, { model: 'm', max_output_tokens: 10_000 });
  const { data } = await jobs.postern.admin<{ data: { id: string }[] }>('GET', `/limits?key=${keyId}`);
  await jobs.postern.admin('POST', `/limits/${data[0]!.id}/reset`, { reason: 'a test' });
  jobs.provider.paths.set('GET /v1/responses/resp_c', { json: { ...response, status: 'completed', usage } });
  await jobs.check(id);
  const [meter] = await jobs.postern.database.query<{ spent: string; credited: string }>(
    'SELECT m.spent, m.credited FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id WHERE r.scope_id = $1',
    [keyId],
  );
  expect(meter).toEqual({ spent: '3000000', credited: '3000000' });
});

it('corrects budgets that all replicas share in their parts', async () => {
  const { id: keyId, key } = await jobs.key({
    budgets: [{ usd: '100.00', period: 'month', reservation: 'worst' }],
  });
  await jobs.postern.database.query('UPDATE limit_rule SET rank = 1 WHERE scope_id = $1', [keyId]);
  const response = {
    id: 'resp_h',
    object: 'response',
    status: 'queued',
    background: true,
    model: 'm',
    usage: null,
  };
  const id = await jobs.create(key, '/v1/responses', response, { model: 'm', max_output_tokens: 10_000 });
  jobs.provider.paths.set('GET /v1/responses/resp_h', { json: { ...response, status: 'completed', usage } });
  await jobs.check(id);
  // With an ID, limit_fold() waits for a locked meter; without one, it skips it.
  await jobs.postern.database.query('SELECT limit_fold(id) FROM limit_rule WHERE scope_id = $1', [keyId]);
  expect(await sums(keyId)).toEqual({ charges: '0.003000000', spent: '0.003000000' });
});

const queued = (id: string) => ({
  id,
  object: 'response',
  status: 'queued',
  background: true,
  model: 'm',
  usage: null,
});

it('counts a job that is settled after a budget was made that counts its period, once', async () => {
  const { id: keyId, key } = await jobs.key();
  const body = { model: 'm', max_output_tokens: 10_000 };
  const ids: string[] = [];
  for (const name of ['resp_n1', 'resp_n2', 'resp_n3'])
    ids.push(await jobs.create(key, '/v1/responses', queued(name), body));
  const end = (name: string) =>
    jobs.provider.paths.set(`GET /v1/responses/${name}`, {
      json: { ...queued(name), status: 'completed', usage },
    });
  const used = async () => {
    const { data } = await jobs.postern.admin<{ data: { resource: string; used: string }[] }>(
      'GET',
      `/limits?key=${keyId}`,
    );
    return Object.fromEntries(data.map((limit) => [limit.resource, limit.used]));
  };
  const budgets = [
    { usd: '100.00', period: 'month' },
    { tokens: 1_000_000, period: 'day', models: ['m'] },
  ];
  end('resp_n1');
  await jobs.check(ids[0]!);
  await jobs.postern.admin('PATCH', `/keys/${keyId}`, { budgets });
  expect(await used()).toEqual({ usd: '0.003', tokens: '1200' });
  end('resp_n2');
  await jobs.check(ids[1]!);
  expect(await used()).toEqual({ usd: '0.006', tokens: '2400' });
  // Those that begin now do not count what began before.
  await jobs.postern.admin('PATCH', `/keys/${keyId}`, { budgets: [] });
  await jobs.postern.admin('PATCH', `/keys/${keyId}`, {
    budgets: budgets.map((budget) => ({ ...budget, count_from: 'now' })),
  });
  end('resp_n3');
  await jobs.check(ids[2]!);
  expect(await used()).toEqual({ usd: '0.00', tokens: '0' });
});

it('counts a job that is settled while a budget is made', async () => {
  const { id: keyId, key } = await jobs.key();
  const id = await jobs.create(key, '/v1/responses', queued('resp_w'), { model: 'm' });
  const { app } = jobs.postern.gateway;
  const limits = app.get(LimitRules, { strict: false });
  const [job] = await jobs.postern.database.query<OpenJob>(
    'SELECT id, started_at AS "startedAt", provider, model FROM provider_job WHERE id = $1',
    [id],
  );
  const used = { ...NO_USAGE, promptTokens: 1_000, completionTokens: 200 };
  let settled: Promise<unknown> = Promise.resolve();
  await app.get(DataSource).transaction(async (manager) => {
    await limits.save(manager, 'key', keyId, { ...NO_LIMITS, budgets: [BUDGET] });
    settled = app.get(JobSettlement, { strict: false }).settle(job!, used);
    await eventually(async () => {
      const waiting = await jobs.postern.database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
           AND query LIKE '%provider_job%'`,
      );
      return waiting.length > 0;
    });
  });
  await settled;
  expect(await jobs.used(keyId)).toBe('0.003');
});

it('a job is settled while `apply` changes the budgets of several owners, without a deadlock', async () => {
  const { admin, database, gateway } = jobs.postern;
  const settlement = gateway.app.get(JobSettlement, { strict: false });
  const budgets = [{ usd: '100.00', period: 'month' }];
  // The settlement has locked the job, and its meters next.
  await database.query(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(4712); RETURN NEW; END $$`);
  await database.query(
    'CREATE TRIGGER hold BEFORE UPDATE ON provider_job FOR EACH ROW EXECUTE FUNCTION hold()',
  );
  const lock = new pg.Client({ connectionString: database.url });
  await lock.connect();
  const waiting = (event: string, query: string) =>
    eventually(async () => {
      const found = await database.query(
        `SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event = '${event}' AND query LIKE '%${query}%'`,
      );
      return found.length > 0;
    });
  const teams = ['job-removed', 'job-made'];
  await admin('POST', '/teams', { name: teams[0], budgets });
  await admin('POST', '/teams', { name: teams[1] });
  const { key } = await jobs.key({ team: teams[0] });
  const id = await jobs.create(key, '/v1/responses', queued('resp_a'), { model: 'm' });
  const [job] = await database.query<OpenJob>(
    'SELECT id, started_at AS "startedAt", provider, model FROM provider_job WHERE id = $1',
    [id],
  );
  try {
    await lock.query('SELECT pg_advisory_lock(4712)');
    const settled = settlement.settle(job!, { ...NO_USAGE, promptTokens: 1_000, completionTokens: 200 });
    await waiting('advisory', 'provider_job');
    const document = {
      teams: [
        { name: teams[0], budgets: [] },
        { name: teams[1], budgets },
      ],
    };
    const applied = admin<{ plan: unknown[] }>('POST', '/apply', { document });
    await waiting('transactionid', 'FROM provider_job');
    await lock.query('SELECT pg_advisory_unlock(4712)');
    const [{ plan }] = await Promise.all([applied, settled]);
    expect(plan).toHaveLength(2);
  } finally {
    await lock.end();
    await database.query('DROP TRIGGER hold ON provider_job');
    await database.query('DROP FUNCTION hold');
  }
  expect(await jobs.row(id)).toMatchObject({ cost_usd: '0.003000000', charge_usd: '0.003000000' });
});

it('a call that gets a job again costs nothing, also once the job is settled', async () => {
  const { id: keyId, key } = await jobs.key({
    budgets: [{ usd: '100.00', period: 'month', reservation: 'worst' }],
  });
  const response = {
    id: 'resp_d',
    object: 'response',
    status: 'queued',
    background: true,
    model: 'm',
    usage: null,
  };
  const body = { model: 'm', max_output_tokens: 10_000 };
  const first = await jobs.create(key, '/v1/responses', response, body);
  const second = await jobs.send(key, 'POST', '/v1/responses', body);
  await eventually(async () => (await jobs.job(first))!.duplicates.includes(second));
  jobs.provider.paths.set('GET /v1/responses/resp_d', { json: { ...response, status: 'completed', usage } });
  await jobs.check(first);
  const third = await jobs.send(key, 'POST', '/v1/responses', body);
  await eventually(async () => (await jobs.job(first))!.duplicates.length === 2);
  expect((await jobs.job(first))!.duplicates).toEqual([second, third]);
  for (const id of [second, third])
    expect(await jobs.row(id)).toMatchObject({
      cost_usd: '0.000000000',
      charge_usd: '0.000000000',
      prompt_tokens: 0,
    });
  expect(await sums(keyId)).toEqual({ charges: '0.003000000', spent: '0.003000000' });
});

it('what used more than was reserved is charged', async () => {
  const { id: keyId, key } = await jobs.key({ budgets: [{ tokens: 1_000_000, period: 'month' }] });
  const id = await jobs.create(key, '/v1/batches', created('batch_t'));
  jobs.provider.paths.set('GET /v1/batches/batch_t', {
    json: {
      ...completed('batch_t'),
      usage: { input_tokens: 900_000, output_tokens: 600_000, total_tokens: 1_500_000 },
    },
  });
  await jobs.check(id);
  expect(await jobs.row(id)).toMatchObject({ charge_tokens: '1500000' });
  expect(Number(await jobs.used(keyId))).toBe(1_500_000);
});

it('what has no price for batches is charged what its tokens cost otherwise, as for any tier without a price', async () => {
  await jobs.postern.admin('POST', '/prices', { catalog: 'default', model: 'own', input: '1', output: '10' });
  const { id: keyId, key } = await jobs.key(BUDGETS);
  const id = await jobs.create(key, '/v1/batches', created('batch_own'));
  jobs.provider.paths.set('GET /v1/batches/batch_own', {
    json: { ...completed('batch_own'), model: 'own' },
  });
  await jobs.check(id);
  expect(await jobs.row(id)).toMatchObject({ model: 'own', cost_usd: null, charge_usd: '0.003000000' });
  expect(await sums(keyId)).toEqual({ charges: '0.003000000', spent: '0.003000000' });
});

it('a settlement that is killed before it is committed is made again', async () => {
  const { id: keyId, key } = await jobs.key(BUDGETS);
  const id = await jobs.create(key, '/v1/batches', created('batch_k'));
  jobs.provider.paths.set('GET /v1/batches/batch_k', { json: completed('batch_k') });
  const { database } = jobs.postern;
  // Its UPDATE waits for this lock, between the provider's response and the commit.
  await database.query(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END $$`);
  await database.query(
    'CREATE TRIGGER hold BEFORE UPDATE ON provider_job FOR EACH ROW WHEN (NEW.state = $$settled$$) EXECUTE FUNCTION hold()',
  );
  const lock = new pg.Client({ connectionString: database.url });
  await lock.connect();
  try {
    await lock.query('SELECT pg_advisory_lock(4711)');
    const check = async () => {
      await database.query('UPDATE provider_job SET next_check_at = now() WHERE id = $1', [id]);
      await jobs.postern.gateway.app.get(JobChecks, { strict: false }).run();
    };
    const running = check().catch(() => {});
    let pid = 0;
    await eventually(async () => {
      const [waiting] = await database.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory' AND query ILIKE '%provider_job%'`,
      );
      pid = waiting?.pid ?? 0;
      return pid !== 0;
    });
    await database.query('SELECT pg_terminate_backend($1)', [pid]);
    await running;
    expect(await jobs.job(id)).toMatchObject({ state: 'open', ended_at: null });
    expect(await jobs.row(id)).toMatchObject({ cost_usd: null });
  } finally {
    await lock.query('SELECT pg_advisory_unlock(4711)');
    await lock.end();
    await database.query('DROP TRIGGER hold ON provider_job');
    await database.query('DROP FUNCTION hold');
  }
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(id)).toMatchObject({ cost_usd: '0.001500000', charge_usd: '0.001500000' });
  const { charges, spent } = await sums(keyId);
  expect(spent).toBe(charges);
});

it('a client that asks for a job while it is settled does not open it again', async () => {
  const { key } = await jobs.key(BUDGETS);
  const { database } = jobs.postern;
  const id = await jobs.create(key, '/v1/batches', created('batch_o'));
  jobs.provider.paths.set('GET /v1/batches/batch_o', {
    json: { ...created('batch_o'), status: 'completed', output_file_id: 'file-o' },
  });
  const other = new pg.Client({ connectionString: database.url });
  await other.connect();
  try {
    await other.query('BEGIN');
    await other.query(
      `UPDATE provider_job SET state = 'settled', sealed_id = NULL, next_check_at = NULL WHERE id = $1`,
      [id],
    );
    await jobs.send(key, 'GET', '/v1/batches/batch_o');
    await eventually(async () => {
      const waiting = await database.query(
        `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%UPDATE provider_job%'`,
      );
      return waiting.length > 0;
    });
    await other.query('COMMIT');
  } finally {
    await other.end();
  }
  await database.find(
    `SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
     WHERE d.datname = current_database() AND relation = 'provider_job'::regclass AND mode = 'RowExclusiveLock')`,
  );
  expect(await jobs.job(id)).toMatchObject({ state: 'settled', next_check_at: null });
});
