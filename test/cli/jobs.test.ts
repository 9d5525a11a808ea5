import { randomBytes } from 'node:crypto';
import { JobGateway, MASTER_KEY } from '../jobs/job-gateway.js';
import { createDatabase } from '../support/database.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import { runHere } from './run-here.js';

let jobs: JobGateway;
let key: string;
beforeAll(async () => {
  jobs = await JobGateway.start();
  ({ key } = await jobs.key());
});
afterAll(() => jobs.stop());

const created = (id: string) => ({ id, object: 'batch', status: 'validating' });
const completed = (id: string) => ({
  ...created(id),
  status: 'completed',
  request_counts: { completed: 1 },
  model: 'm',
  usage: { input_tokens: 10, output_tokens: 2, total_tokens: 12 },
});
const cli = (...args: string[]) =>
  runHere(['jobs', ...args], { POSTERN_URL: jobs.postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN });

describe('postern jobs', () => {
  it('lists jobs by state and provider, and has one checked', async () => {
    expect(await cli('list')).toMatchObject({ code: 0, stdout: 'No jobs found.\n' });
    const [open, gone, settled] = [
      await jobs.create(key, '/v1/batches', created('batch_open')),
      await jobs.create(key, '/v1/batches', created('batch_gone')),
      await jobs.create(key, '/v1/batches', created('batch_settled')),
    ];
    jobs.provider.paths.set('GET /v1/batches/batch_open', { status: 401, json: {} });
    jobs.provider.paths.set('GET /v1/batches/batch_gone', {
      json: { ...created('batch_gone'), status: 'completed' },
    });
    jobs.provider.paths.set('GET /v1/batches/batch_settled', { json: completed('batch_settled') });
    for (const id of [open, gone, settled]) await jobs.check(id);

    const { code, stdout, stderr } = await cli('list');
    expect([code, stderr]).toEqual([0, '']);
    const [head, ...rows] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^CALL +KIND +PROVIDER +KEY +STATE +PROBLEM +STARTED +NEXT CHECK$/);
    expect(rows.map((row) => row.split(/ {2,}/).slice(0, 6))).toEqual([
      [settled, 'batch', 'default', expect.stringMatching(/^default\//), 'settled', expect.any(String)],
      [gone, 'batch', 'default', expect.stringMatching(/^default\//), 'unknown', 'no_usage'],
      [open, 'batch', 'default', expect.stringMatching(/^default\//), 'open', 'unauthorized'],
    ]);
    const idsOf = async (...args: string[]) => {
      const page = JSON.parse((await cli('list', '--json', ...args)).stdout) as { data: { id: string }[] };
      return page.data.map(({ id }) => id);
    };
    expect(await idsOf('--open')).toEqual([open]);
    expect(await idsOf('--unknown')).toEqual([gone]);
    expect(await idsOf('--provider', 'default', '--limit', '1')).toEqual([settled]);
    expect(await idsOf('--provider', 'other')).toEqual([]);

    const again = await jobs.send(key, 'POST', '/v1/batches');
    await jobs.postern.database.find('SELECT 1 FROM provider_job WHERE $1 = ANY (duplicates)', [again]);
    const shown = await cli('show', settled);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toMatch(/^kind +batch$/m);
    expect(shown.stdout).toMatch(/^state +settled$/m);
    expect(shown.stdout).toMatch(new RegExp(`^duplicates +${again}$`, 'm'));
    expect(JSON.parse((await cli('show', open, '--json')).stdout)).toEqual(await jobs.job(open));
    expect(await cli('show', again)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no such job') as string,
    });

    jobs.provider.paths.set('GET /v1/batches/batch_gone', { status: 401, json: {} });
    const checked = await cli('check', gone);
    expect(checked).toMatchObject({
      code: 0,
      stdout: `Provider default is asked within some seconds. See "postern jobs show ${gone}".\n`,
    });
    expect(await idsOf('--open')).toEqual([gone, open]);
    expect(JSON.parse((await cli('check', open, '--json')).stdout)).toMatchObject({
      id: open,
      state: 'open',
    });
    expect(await cli('check', settled)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('this job is settled: what it used is in the request log') as string,
    });
    expect(await cli('check', '01890a5d-ac96-774b-bcce-b302099a8057')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no such job') as string,
    });
    expect((await cli('check', 'batch_open')).code).toBe(1);
    // What identifies a job at its provider is shown nowhere.
    expect((await cli('list', '--json', '--wide')).stdout).not.toContain('batch_');
  });

  it('are settled after a change of MASTER_KEY, once "postern providers reseal" has run', async () => {
    const database = await createDatabase();
    const first = await JobGateway.start({}, database, jobs.provider);
    const id = await first.create((await first.key()).key, '/v1/batches', created('batch_key'));
    await first.postern.stop();
    jobs.provider.paths.set('GET /v1/batches/batch_key', { json: completed('batch_key') });
    const next = randomBytes(32).toString('base64');
    const second = await JobGateway.start({ MASTER_KEY: next }, database, jobs.provider);
    try {
      expect(await second.check(id)).toMatchObject({ state: 'open', problem: 'unreadable_secret' });
      const resealed = await runHere(['providers', 'reseal'], {
        DATABASE_URL: database.url,
        MASTER_KEY: next,
        MASTER_KEY_PREVIOUS: MASTER_KEY,
      });
      expect(resealed).toMatchObject({ code: 0, stderr: '' });
      expect(resealed.stdout).toContain('Re-encrypted: 1. Already encrypted with this key: 0.');
      expect(await second.check(id)).toMatchObject({ state: 'settled' });
      expect(await second.row(id)).toMatchObject({ prompt_tokens: 10, completion_tokens: 2 });
    } finally {
      await second.postern.stop();
      await database.drop();
    }
  });
});
