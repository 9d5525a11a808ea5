import { JobGateway, JobProvider, MASTER_KEY } from '../jobs/job-gateway.js';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN, PROVIDER_KEY } from '../support/gateway.js';
import { withFault } from '../support/kill-rounds.js';
import { itNeeding, unsetVariables } from '../support/needing.js';
import { GatewayProcess } from '../support/process.js';
import { Workplace } from '../support/workplace.js';

/** The folder of a checkout from before jobs, with its build. */
const { ROLLING_JOBS_FROM } = process.env;

const created = (id: string) => ({ id, object: 'batch', status: 'validating' });
const usage = { input_tokens: 1_000, output_tokens: 200, total_tokens: 1_200 };
const completed = (id: string) => ({
  ...created(id),
  status: 'completed',
  request_counts: { completed: 1 },
  model: 'm',
  usage,
});

let database: TestDatabase;
let workplace: Workplace;
let provider: JobProvider;
let old: GatewayProcess;
let settings: Record<string, string>;

/** Not an error, and not a warning that it repeats. */
function isQuiet({ process }: GatewayProcess): void {
  const lines = `${process.stdout}${process.stderr}`.split('\n');
  const loud = lines.filter((line) => /"level":"?(?:error|fatal|50|60)|\b(?:ERROR|FATAL)\b/i.test(line));
  expect(loud).toEqual([]);
}

async function upgrade(): Promise<void> {
  const oldUrl = await old.ready();
  const next = await JobGateway.start({}, database, provider);
  const { postern } = next;
  try {
    await postern.admin('POST', '/prices', {
      catalog: 'default',
      model: 'm',
      input: '1',
      output: '10',
      tiers: [{ service_tier: 'batch', input: '0.5', output: '5' }],
    });
    const { id: keyId, key } = await next.key({
      budgets: [
        { usd: '100.00', period: 'month', unpriced: 'allow' },
        { tokens: 10_000_000, period: 'month' },
      ],
    });
    const before = new JobGateway({ ...postern, url: oldUrl }, provider);
    provider.paths.set('POST /v1/batches', (request) => ({
      json: created(request.json<{ input_file_id: string }>().input_file_id),
    }));
    const create = (by: JobGateway, id: string) => by.send(key, 'POST', '/v1/batches', { input_file_id: id });
    // The key may still be unknown to the old one.
    const ofOld = [await eventually(() => create(before, 'batch_old_1').catch(() => null))];
    ofOld.push(await create(before, 'batch_old_2'));
    const ofNew = [await create(next, 'batch_1'), await create(next, 'batch_2')];
    for (const id of ofNew) await eventually(async () => (await next.job(id)) !== undefined);
    // Repeated at the old one, which does not know that it costs nothing.
    const again = await create(before, 'batch_1');
    const names = ['batch_old_1', 'batch_old_2', 'batch_1', 'batch_2'];
    for (const name of names) provider.paths.set(`GET /v1/batches/${name}`, { json: completed(name) });
    await database.query('UPDATE provider_job SET next_check_at = now()');
    await Promise.all(
      names.flatMap((name) =>
        Array.from({ length: 20 }, (_, i) => (i % 2 ? next : before).send(key, 'GET', `/v1/batches/${name}`)),
      ),
    );
    for (const id of ofNew) {
      await eventually(async () => (await next.job(id))!.state === 'settled');
      expect(await next.row(id)).toMatchObject({
        prompt_tokens: 1_000,
        cost_usd: '0.001500000',
        charge_usd: '0.001500000',
        charge_tokens: '1200',
      });
    }
    const sent = names.length * 20 + ofNew.length + ofOld.length + 1;
    await eventually(async () => (await postern.rowCount()) === sent);
    for (const id of [...ofOld, again]) {
      expect(await next.job(id)).toBeUndefined();
      expect(await next.row(id)).toMatchObject({ cost_usd: null, prompt_tokens: null });
    }
    const [sums] = await database.query(
      `SELECT (SELECT (sum(charge_usd) * 1000000000)::bigint FROM request_log WHERE key_id = $1)::text AS usd,
              (SELECT sum(charge_tokens) FROM request_log WHERE key_id = $1)::text AS tokens,
              (SELECT m.spent FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
               WHERE r.scope_id = $1 AND r.resource = 'usd')::text AS usd_spent,
              (SELECT m.spent FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
               WHERE r.scope_id = $1 AND r.resource = 'tokens')::text AS tokens_spent`,
      [keyId],
    );
    expect(sums).toEqual({ usd: '3000000', usd_spent: '3000000', tokens: '2400', tokens_spent: '2400' });
    isQuiet(old);
    expect(await old.stop()).toEqual({ code: 0, signal: null });

    // A rollback: the old version starts on the journal of a new one that was killed.
    const killed = workplace.gateway({ ...settings, ...withFault({ at: 'append:U', do: 'kill-before' }) });
    const id = await create(new JobGateway({ ...postern, url: await killed.ready() }, provider), 'batch_9');
    expect((await killed.process.ended).signal).toBe('SIGKILL');
    old = GatewayProcess.ofCheckout(ROLLING_JOBS_FROM!, workplace.folder, settings);
    await old.ready();
    expect(await next.row(id)).toMatchObject({ outcome: 'completed', cost_usd: null });
    isQuiet(old);
    expect(await old.stop()).toEqual({ code: 0, signal: null });
  } finally {
    await postern.stop();
  }
}

itNeeding(
  unsetVariables('ROLLING_JOBS_FROM'),
  'beside a replica from before jobs, they are settled once, and it sees no error',
  async () => {
    database = await createDatabase({ empty: true });
    workplace = await Workplace.make();
    provider = await JobProvider.start();
    settings = {
      DATABASE_URL: database.url,
      PROVIDER_URL: provider.fake.url,
      PROVIDER_KEY,
      ADMIN_TOKEN,
      MASTER_KEY,
      DATA_DIR: workplace.dataDir,
    };
    old = GatewayProcess.ofCheckout(ROLLING_JOBS_FROM!, workplace.folder, settings);
    try {
      await upgrade();
    } finally {
      await workplace.remove();
      await provider.fake.stop();
      await database.drop();
    }
  },
);
