import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { ReplicaJobs } from '../../src/database/replica-jobs.service.js';
import { JobChecks } from '../../src/jobs/job-checks.service.js';
import type { FakeResponder, FakeResponse } from '../../src/testing/fake-provider.js';
import { runCli } from '../cli/run-cli.js';
import { JobGateway, MASTER_KEY } from '../jobs/job-gateway.js';
import { eventually } from '../support/eventually.js';
import { filesHolding } from '../support/files-below.js';
import { withFault } from '../support/kill-rounds.js';
import type { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';

/** The replica that stays, in this process. */
let other: JobGateway;
let workplace: Workplace;
let key: { id: string; key: string };
let checks: JobChecks;
beforeEach(async () => {
  other = await JobGateway.start();
  workplace = await Workplace.make();
  key = await other.key({
    budgets: [
      { usd: '100.00', period: 'month', unpriced: 'allow' },
      { tokens: 1_000_000, period: 'month' },
    ],
  });
  checks = other.postern.gateway.app.get(JobChecks, { strict: false });
});
afterEach(async () => {
  await workplace.remove();
  await other.stop();
});

const created = { id: 'batch_1', object: 'batch', status: 'validating' };
const usage = { input_tokens: 1_000, output_tokens: 200, total_tokens: 1_200 };
const ended = { ...created, status: 'completed', request_counts: { completed: 1 }, model: 'm', usage };

const start = (more: Record<string, string> = {}) =>
  workplace.gateway({
    DATABASE_URL: other.postern.database.url,
    PROVIDER_URL: other.provider.fake.url,
    MASTER_KEY,
    ...more,
  });

/** The process, as a gateway that calls are sent to. */
async function at(process: GatewayProcess): Promise<JobGateway> {
  return new JobGateway({ ...other.postern, url: await process.ready() }, other.provider);
}

/** Of its row, and of both budgets. */
async function isSettled(id: string, usd = '0.001500000'): Promise<void> {
  await eventually(async () => (await other.job(id))?.state === 'settled');
  expect(await other.row(id)).toMatchObject({
    prompt_tokens: 1_000,
    completion_tokens: 200,
    cost_usd: usd,
    charge_usd: usd,
    charge_tokens: '1200',
  });
  const meters = await other.postern.database.query(
    `SELECT r.resource, m.spent FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
     WHERE r.scope_id = $1 ORDER BY r.resource`,
    [key.id],
  );
  expect(meters).toEqual([
    { resource: 'tokens', spent: '1200' },
    { resource: 'usd', spent: String(Math.round(Number(usd) * 1e9)) },
  ]);
}

/** A job that is due, and that only the process asks for. */
async function dueFor(process: GatewayProcess, response: FakeResponder = { json: ended }): Promise<string> {
  checks.run = () => Promise.resolve(false);
  // This one may have asked already, and keeps the lock for it while it runs; or asks just now.
  const running = Reflect.get(other.postern.gateway.app.get(ReplicaJobs), 'running') as Map<string, unknown>;
  await eventually(() => !running.has('provider-jobs'));
  await other.postern.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'postern-jobs'`,
  );
  const id = await (await at(process)).create(key.key, '/v1/batches', created);
  other.provider.paths.set('GET /v1/batches/batch_1', response);
  await other.postern.database.query('UPDATE provider_job SET next_check_at = now() WHERE id = $1', [id]);
  return id;
}

it('a replica that is killed between the response of the provider and the settlement leaves it to another one', async () => {
  const killed = start(withFault({ at: 'settle', do: 'kill-before' }));
  const id = await dueFor(killed);
  expect((await killed.process.ended).signal).toBe('SIGKILL');
  expect(other.provider.asked('/v1/batches/batch_1')).toHaveLength(1);
  expect(await other.job(id)).toMatchObject({ state: 'open', tries: 0 });
  expect(await other.row(id)).toMatchObject({ cost_usd: null, charge_tokens: '0' });
  checks.run = JobChecks.prototype.run.bind(checks);
  await isSettled(id);
});

it('a replica that is killed right after the settlement has settled it, and no other one does', async () => {
  const { database } = other.postern;
  await database.query(`CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_notify('settled', ''); RETURN NULL; END $$`);
  await database.query(
    `CREATE TRIGGER tell AFTER UPDATE ON provider_job FOR EACH ROW WHEN (NEW.state = 'settled') EXECUTE FUNCTION tell()`,
  );
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query('LISTEN settled');
    const killed = start();
    const committed = new Promise<void>((resolve) => {
      client.once('notification', () => {
        killed.process.signal('SIGKILL');
        resolve();
      });
    });
    const id = await dueFor(killed);
    await committed;
    await killed.process.ended;
    checks.run = JobChecks.prototype.run.bind(checks);
    await other.send(key.key, 'GET', '/v1/batches/batch_1');
    // Postgres notices after a while that the process is gone, which had the lock.
    await eventually(() => checks.run());
    await isSettled(id);
  } finally {
    await client.end();
  }
});

it('a replica that is frozen within a check loses it to another one, and changes nothing when it continues', async () => {
  const frozen = start();
  let askedFirst!: () => void;
  const asked = new Promise<void>((resolve) => (askedFirst = resolve));
  let respond!: () => void;
  const responded = new Promise<FakeResponse>((resolve) => (respond = () => resolve({ json: ended })));
  const id = await dueFor(frozen, () => {
    askedFirst();
    other.provider.paths.set('GET /v1/batches/batch_1', { json: ended });
    return responded;
  });
  await asked;
  frozen.process.signal('SIGSTOP');
  checks.run = JobChecks.prototype.run.bind(checks);
  await isSettled(id);
  expect(other.provider.asked('/v1/batches/batch_1')).toHaveLength(2);
  respond();
  frozen.process.signal('SIGCONT');
  // It also sees the end of the job in the response to a caller.
  const call = await (await at(frozen)).send(key.key, 'GET', '/v1/batches/batch_1');
  await other.row(call);
  await frozen.process.kill();
  await isSettled(id);
});

describe('a gateway that is killed right after it has responded to the call', () => {
  const check = (id: string) =>
    other.postern.database.query('UPDATE provider_job SET next_check_at = now() WHERE id = $1', [id]);
  /** It is killed before it has journalled anything after the response. */
  const create = async (response: FakeResponse) => {
    const killed = start(withFault({ at: 'append:U', do: 'kill-before' }));
    const to = await at(killed);
    other.provider.paths.set('POST /v1/batches', response);
    other.provider.paths.set('GET /v1/batches/batch_1', { json: ended });
    const id = await to.send(key.key, 'POST', '/v1/batches');
    expect((await killed.process.ended).signal).toBe('SIGKILL');
    expect(await other.postern.rowCount()).toBe(0);
    expect(await filesHolding(workplace.folder, ['batch_1'])).toEqual([]);
    return id;
  };

  it.each<[string, FakeResponse]>([
    ['plain', { json: created }],
    [
      'compressed',
      {
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        body: gzipSync(JSON.stringify(created)),
      },
    ],
  ])('brings the job from its journal when it starts again: %s', async (_, response) => {
    const id = await create(response);
    await start().ready();
    await eventually(async () => (await other.job(id))?.state === 'open');
    await check(id);
    await isSettled(id);
  });

  it('leaves a journal that "postern journal drain" brings, and another replica settles the job', async () => {
    const id = await create({ json: created });
    const env = { DATABASE_URL: other.postern.database.url };
    expect(await runCli(['journal', 'drain', workplace.dataDir], env)).toMatchObject({ code: 0, stderr: '' });
    expect(await other.job(id)).toMatchObject({ state: 'open' });
    await check(id);
    await isSettled(id);
  });
});

describe('a gateway that is killed after the provider has begun a background response', () => {
  const response = { id: 'resp_1', object: 'response', status: 'queued', background: true, model: 'm' };
  const settles = async (id: string) => {
    other.provider.paths.set('GET /v1/responses/resp_1', {
      json: { ...response, status: 'completed', usage },
    });
    await start().ready();
    await eventually(async () => (await other.job(id))?.state === 'open');
    await other.postern.database.query('UPDATE provider_job SET next_check_at = now()');
    await isSettled(id, '0.003000000');
  };
  const body = { model: 'm', background: true, input: 'x' };

  it('brings it from its journal when it starts again: before it had journalled anything after the response', async () => {
    const killed = start(withFault({ at: 'append:U', do: 'kill-before' }));
    other.provider.paths.set('POST /v1/responses', { json: response });
    const id = await (await at(killed)).send(key.key, 'POST', '/v1/responses', body);
    expect((await killed.process.ended).signal).toBe('SIGKILL');
    expect(await other.postern.rowCount()).toBe(0);
    await settles(id);
  });

  it('brings it from its journal when it starts again: within its stream', async () => {
    const killed = start(withFault({ at: 'append:E', do: 'kill-before' }));
    const url = await killed.ready();
    other.provider.paths.set('POST /v1/responses', { sse: [{ type: 'response.created', response }] });
    const call = await fetch(`${url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true }),
    });
    await call.text().catch(() => {});
    expect((await killed.process.ended).signal).toBe('SIGKILL');
    await settles(call.headers.get('x-gateway-request-id')!);
  });
});
