import { randomInt } from 'node:crypto';
import { JobChecks } from '../../src/jobs/job-checks.service.js';
import { eventually } from '../support/eventually.js';
import { JobGateway } from './job-gateway.js';

let replicas: JobGateway[];
let jobs: JobGateway;
beforeAll(async () => {
  jobs = await JobGateway.start();
  const others = [1, 2].map(() => JobGateway.start({}, jobs.postern.database, jobs.provider));
  replicas = [jobs, ...(await Promise.all(others))];
  // Every change that a settlement makes leaves a row here: of the job, and of the charge of its call.
  await jobs.postern.database.query(`
    CREATE TABLE settled (id uuid, what text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO settled VALUES (NEW.id, TG_ARGV[0]); RETURN NULL; END $$;
    CREATE TRIGGER note AFTER UPDATE ON provider_job FOR EACH ROW 
      WHEN (OLD.state <> 'settled' AND NEW.state = 'settled') EXECUTE FUNCTION note('job');
    CREATE TRIGGER note AFTER UPDATE ON request_log FOR EACH ROW WHEN (NEW.usage_final) EXECUTE FUNCTION note('row');`);
});
afterAll(async () => {
  for (const replica of replicas.slice(1)) await replica.postern.stop();
  await jobs.stop();
});

const BUDGETS = [
  { usd: '100.00', period: 'month', unpriced: 'allow' },
  { tokens: 100_000_000, period: 'month' },
];

/** What the provider bills for a batch, at 0.5 and 5 USD a million tokens, and how it reports that. */
function batch(number: number) {
  const [input, output] = [randomInt(1_000, 90_000), randomInt(1, 9_000)];
  const created = { id: `batch_${number}`, object: 'batch', status: 'validating' };
  const counts = { total: 2, completed: 2, failed: 0 };
  const usage = { input_tokens: input, output_tokens: output, total_tokens: input + output };
  const [first, second] = [randomInt(0, input), randomInt(0, output)];
  const line = (prompt: number, completion: number) =>
    `${JSON.stringify({
      response: {
        status_code: 200,
        body: { model: 'm', usage: { prompt_tokens: prompt, completion_tokens: completion } },
      },
    })}\n`;
  const ended = { ...created, status: 'completed', request_counts: counts, model: 'm' };
  const file = `file-${number}`;
  return {
    input,
    output,
    usd: ((input * 0.5 + output * 5) / 1e6).toFixed(9),
    path: `/v1/batches/batch_${number}`,
    created,
    // Half of them have the sum, the others only a file of results.
    ended: number % 2 ? { ...ended, usage } : { ...ended, output_file_id: file },
    file: `/v1/files/${file}/content`,
    lines: line(first, second) + line(input - first, output - second),
  };
}

it('settles batches once, whoever finds their end: 3 replicas and the clients, 50 times each', async () => {
  const { database } = jobs.postern;
  const team = await jobs.postern.admin<{ id: string }>('POST', '/teams', {
    name: 'batches',
    budgets: BUDGETS,
  });
  const keys = await Promise.all([1, 2].map(() => jobs.key({ team: 'batches', budgets: BUDGETS })));
  const batches = Array.from({ length: 6 }, (_, i) => batch(i));
  const keyOf = (i: number) => keys[i % 2]!.key;
  const calls: { id: string; again: string[] }[] = [];
  // Each is created twice, as by a client that repeats its request with an Idempotency-Key of the provider.
  const create = (by: JobGateway, i: number) =>
    by.send(keyOf(i), 'POST', '/v1/batches', { input_file_id: i });
  jobs.provider.paths.set('POST /v1/batches', (request) => ({
    json: batches[request.json<{ input_file_id: number }>().input_file_id]!.created,
  }));
  for (const i of batches.keys()) {
    const id = await create(jobs, i);
    await eventually(async () => (await jobs.job(id)) !== undefined);
    calls.push({ id, again: [await create(replicas[1]!, i)] });
  }
  for (const { path, ended, file, lines } of batches) {
    jobs.provider.paths.set(`GET ${path}`, { json: ended });
    jobs.provider.paths.set(`GET ${file}`, { body: lines });
  }
  await database.query('UPDATE provider_job SET next_check_at = now()');
  await Promise.all(
    batches.flatMap(({ path }, i) =>
      Array.from({ length: 50 }, async (_, n) => {
        const replica = replicas[n % 3]!;
        // It is repeated once more while it is settled.
        if (n === 25) calls[i]!.again.push(await create(replica, i));
        await replica.send(keyOf(i), 'GET', path);
        await replica.postern.gateway.app.get(JobChecks, { strict: false }).run();
      }),
    ),
  );
  const rows = batches.length * (1 + 2 + 50);
  await eventually(async () => (await jobs.postern.rowCount()) === rows);
  await eventually(async () => (await jobs.jobs()).every(({ state }) => state === 'settled'));

  expect((await jobs.jobs()).length).toBe(batches.length);
  for (const [i, { input, output, usd }] of batches.entries()) {
    const { id, again } = calls[i]!;
    expect(await jobs.row(id)).toMatchObject({
      model: 'm',
      prompt_tokens: input,
      completion_tokens: output,
      cost_usd: usd,
      charge_usd: usd,
      charge_tokens: `${input + output}`,
    });
    await eventually(async () => (await jobs.job(id))!.duplicates.length === 2);
    expect((await jobs.job(id))!.duplicates.sort()).toEqual(again.sort());
    for (const duplicate of again)
      expect(await jobs.row(duplicate)).toMatchObject({
        prompt_tokens: 0,
        cost_usd: '0.000000000',
        charge_usd: '0.000000000',
        charge_tokens: '0',
      });
  }
  const settled = await database.query<{ what: string; ids: number; times: number }>(
    'SELECT what, count(DISTINCT id)::int AS ids, count(*)::int AS times FROM settled GROUP BY what ORDER BY what',
  );
  expect(settled).toEqual([
    { what: 'job', ids: batches.length, times: batches.length },
    { what: 'row', ids: 3 * batches.length, times: 3 * batches.length },
  ]);
  const sums = await database.query<{ owner: string; resource: string; spent: string; charged: string }>(
    `SELECT r.scope AS owner, r.resource, u.spent::text,
            CASE r.resource WHEN 'usd' THEN sum(l.charge_usd) * 1000000000 ELSE sum(l.charge_tokens) END::bigint::text AS charged
     FROM limit_rule r
     JOIN (SELECT rule_id, sum(spent)::bigint AS spent FROM limit_meter GROUP BY rule_id) u ON u.rule_id = r.id
     JOIN request_log l ON r.scope_id IN (l.key_id, l.team_id)
     WHERE r.scope_id = ANY ($1) GROUP BY r.id, u.spent`,
    [[team.id, ...keys.map(({ id }) => id)]],
  );
  expect(sums).toHaveLength(6);
  for (const { spent, charged } of sums) expect(spent).toBe(charged);
  const used = batches.reduce((sum, { usd }) => sum + Math.round(Number(usd) * 1e9), 0);
  expect(sums.find(({ owner, resource }) => owner === 'team' && resource === 'usd')!.spent).toBe(`${used}`);
});
