import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ProviderJobKeeper } from '../../src/jobs/job-keeper.service.js';
import { ResealService } from '../../src/providers/reseal.service.js';
import { FakeProvider } from '../../src/testing/fake-provider.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway } from '../support/gateway.js';
import { JobGateway, JobProvider, MASTER_KEY } from './job-gateway.js';

let jobs: JobGateway;
let key: string;
beforeAll(async () => {
  jobs = await JobGateway.start();
  ({ key } = await jobs.key());
});
afterAll(() => jobs.stop());

const usage = { input_tokens: 10, output_tokens: 2, total_tokens: 12 };
const created = (id: string) => ({ id, object: 'batch', status: 'validating' });
const completed = (id: string) => ({
  ...created(id),
  status: 'completed',
  request_counts: { completed: 1 },
  model: 'm',
  usage,
});
const SETTLED = { model: 'm', prompt_tokens: 10, completion_tokens: 2 };

it.each([
  [401, 'unauthorized'],
  [404, 'not_found'],
  [429, 'rate_limited'],
  [500, 'provider_error'],
  [302, 'unexpected_status'],
] as const)('a provider that responds with %d is asked again later', async (status, problem) => {
  const name = `batch_${status}`;
  const id = await jobs.create(key, '/v1/batches', created(name));
  jobs.provider.paths.set(`GET /v1/batches/${name}`, {
    status,
    headers: { location: '/elsewhere' },
    json: {},
  });
  const before = Date.now();
  const job = await jobs.check(id);
  expect(job).toMatchObject({ state: 'open', problem, tries: 1 });
  const minutes = (Date.parse(job.next_check_at!) - before) / 60_000;
  expect(minutes).toBeGreaterThan(1.9);
  expect(minutes).toBeLessThan(4);
  jobs.provider.paths.set(`GET /v1/batches/${name}`, { json: completed(name) });
  expect(await jobs.check(id)).toMatchObject({ state: 'settled', problem: null });
  expect(await jobs.row(id)).toMatchObject(SETTLED);
});

it('the pauses between checks double up to an hour', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_p'));
  jobs.provider.paths.set('GET /v1/batches/batch_p', { json: created('batch_p') });
  const pauses: number[] = [];
  for (let i = 0; i < 8; i++) {
    const { next_check_at: next, checked_at: checked } = await jobs.check(id);
    pauses.push(Math.round((Date.parse(next!) - Date.parse(checked!)) / 60_000));
  }
  expect(pauses).toEqual([2, 4, 8, 16, 32, 60, 60, 60]);
});

it('a response that is no job, or another one, settles nothing', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_x'));
  for (const body of ['', 'no JSON', '[]', '{"object":"batch"', JSON.stringify(completed('batch_other'))]) {
    jobs.provider.paths.set('GET /v1/batches/batch_x', { body });
    expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'unreadable' });
  }
  // Nor does one that a caller gets at the place of another job.
  jobs.provider.paths.set('GET /v1/batches/batch_y', { json: completed('batch_x') });
  await jobs.row(await jobs.send(key, 'GET', '/v1/batches/batch_y'));
  expect(await jobs.job(id)).toMatchObject({ state: 'open' });
});

describe('a job that has ended, in a response that ends too early, is free of charge nowhere', () => {
  const gemini = '/v1beta/models/m:batchGenerateContent';
  const kinds = [
    {
      name: 'batch_cut',
      create: '/v1/batches',
      created: created('batch_cut'),
      ended: { ...completed('batch_cut'), output_file_id: 'file-cut' },
      path: '/v1/batches/batch_cut',
    },
    {
      name: 'msgbatch_cut',
      create: '/v1/messages/batches',
      created: { id: 'msgbatch_cut', type: 'message_batch', processing_status: 'in_progress' },
      ended: {
        id: 'msgbatch_cut',
        type: 'message_batch',
        processing_status: 'ended',
        request_counts: { succeeded: 1 },
      },
      path: '/v1/messages/batches/msgbatch_cut',
    },
    {
      name: 'gemini',
      create: gemini,
      created: { name: 'batches/cut', metadata: { model: 'models/m', state: 'BATCH_STATE_PENDING' } },
      ended: {
        name: 'batches/cut',
        metadata: { model: 'models/m', state: 'BATCH_STATE_SUCCEEDED' },
        done: true,
        response: {
          inlinedResponses: {
            inlinedResponses: [
              { response: { usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2 } } },
            ],
          },
        },
      },
      path: '/v1beta/batches/cut',
    },
    {
      name: 'video',
      create: '/v1/videos',
      created: { id: 'video_cut', object: 'video', status: 'queued', model: 'm' },
      ended: { id: 'video_cut', object: 'video', status: 'completed', model: 'm', size: '1x1', seconds: '8' },
      path: '/v1/videos/video_cut',
    },
    {
      name: 'response',
      create: '/v1/responses',
      created: { id: 'resp_cut', object: 'response', status: 'queued', background: true, model: 'm' },
      ended: { id: 'resp_cut', object: 'response', status: 'completed', background: true, model: 'm', usage },
      path: '/v1/responses/resp_cut',
    },
  ];

  it.each(kinds)('$name', async ({ create, created: begun, ended, path }) => {
    const id = await jobs.create(key, create, begun, { model: 'm' }, `/p/default${create}`);
    const text = JSON.stringify(ended);
    // Each place where it may end: after a member, and within one.
    const ends = [...text.matchAll(/,/g)].map(({ index }) => index).concat(text.length - 1);
    for (const end of ends) {
      const cut = text.slice(0, end);
      jobs.provider.paths.set(`GET ${path}`, { headers: { 'content-type': 'application/json' }, body: cut });
      expect([cut, await jobs.check(id)]).toMatchObject([cut, { state: 'open', problem: 'unreadable' }]);
      await jobs.send(key, 'GET', `/p/default${path}`);
    }
    // The requests of the caller have been read, too.
    await eventually(async () => {
      const [row] = await jobs.postern.database.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM request_log WHERE method = 'GET' AND path = $1`,
        [`/p/default${path}`],
      );
      return row!.count === ends.length;
    });
    expect(await jobs.job(id)).toMatchObject({ state: 'open' });
    expect(await jobs.row(id)).toMatchObject({ cost_usd: null, usage_final: false });
  });
});

it('a caller that disconnects within the response, or asks for a part of it, does not settle its job', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_part'));
  const path = '/v1/batches/batch_part';
  const headers = { 'content-type': 'application/json' };
  const part = JSON.stringify({ ...created('batch_part'), status: 'failed' });
  jobs.provider.paths.set(`GET ${path}`, {
    headers: { 'content-type': 'application/json' },
    body: part.slice(0, -1),
    breaks: true,
  });
  const cut = await fetch(jobs.postern.url + path, { headers: { authorization: `Bearer ${key}` } });
  await expect(cut.text()).rejects.toThrow();
  jobs.provider.paths.set(`GET ${path}`, { status: 206, headers, body: part });
  const range = await fetch(jobs.postern.url + path, { headers: { authorization: `Bearer ${key}` } });
  expect([range.status, await range.text()]).toEqual([206, part]);
  for (const { headers: sent } of [cut, range]) await jobs.row(sent.get('x-gateway-request-id')!);
  expect(await jobs.job(id)).toMatchObject({ state: 'open' });
  jobs.provider.paths.set(`GET ${path}`, { json: completed('batch_part') });
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(id)).toMatchObject(SETTLED);
});

it('a batch that has ended and says neither what it used nor how many requests succeeded stays unknown', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_q'));
  jobs.provider.paths.set('GET /v1/batches/batch_q', {
    json: { ...created('batch_q'), status: 'completed' },
  });
  expect(await jobs.check(id)).toMatchObject({ state: 'unknown', problem: 'no_usage' });
  expect(await jobs.row(id)).toMatchObject({ cost_usd: null });
});

const line = (n: number) =>
  `${JSON.stringify({ custom_id: `${n}`, response: { status_code: 200, body: { model: 'm', usage } } })}\n`;

it('results that are no file of results, or its start, are asked for again', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_r'));
  const { usage: _, ...ended } = completed('batch_r');
  jobs.provider.paths.set('GET /v1/batches/batch_r', {
    json: { ...ended, output_file_id: 'file-r', request_counts: { total: 3, completed: 3 } },
  });
  const whole = line(1) + line(2) + line(3);
  for (const body of [
    '',
    '<html><body>Sign in</body></html>',
    line(1) + line(2),
    whole.slice(0, -10),
    '{"error":{"message":"no"}}',
  ]) {
    jobs.provider.paths.set('GET /v1/files/file-r/content', { body });
    expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'incomplete' });
    expect(await jobs.row(id)).toMatchObject({ cost_usd: null });
  }
  for (const status of [401, 404, 500]) {
    jobs.provider.paths.set('GET /v1/files/file-r/content', { status, body: whole });
    expect(await jobs.check(id)).toMatchObject({ state: 'open' });
  }
  jobs.provider.paths.set('GET /v1/files/file-r/content', { body: whole });
  expect(await jobs.check(id)).toMatchObject({ state: 'settled', problem: null });
  expect(await jobs.row(id)).toMatchObject({ prompt_tokens: 30, completion_tokens: 6 });
});

it('follows no redirect and no address to another origin, and shows no secret there', async () => {
  const elsewhere = await JobProvider.start();
  elsewhere.fake.respond({ json: completed('batch_e') });
  const id = await jobs.create(key, '/v1/batches', created('batch_e'));
  const to = (path: string) => ({ status: 307, headers: { location: elsewhere.fake.url + path } });
  jobs.provider.paths.set('GET /v1/batches/batch_e', to('/v1/batches/batch_e'));
  expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'unexpected_status' });
  const { usage: _, ...ended } = completed('batch_e');
  jobs.provider.paths.set('GET /v1/batches/batch_e', { json: { ...ended, output_file_id: 'file-e' } });
  jobs.provider.paths.set('GET /v1/files/file-e/content', to('/v1/files/file-e/content'));
  expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'unexpected_status' });
  // An ID that is no name of a file leads nowhere either.
  for (const file of [
    `${elsewhere.fake.url}/file`,
    '../../../file',
    '//elsewhere/file',
    'a/b',
    'a?b',
    'a%2f..',
  ]) {
    jobs.provider.paths.set('GET /v1/batches/batch_e', { json: { ...ended, output_file_id: file } });
    expect(await jobs.check(id)).toMatchObject({ state: 'unknown', problem: 'no_usage' });
  }
  expect(elsewhere.fake.requests).toEqual([]);
  await elsewhere.fake.stop();
});

it('what is too large is not read, and announced as lost', async () => {
  const { database } = jobs.postern;
  await jobs.postern.admin('POST', '/webhooks', { url: 'http://127.0.0.1:9/large', events: ['job.lost'] });
  const [first, second] = [
    await jobs.create(key, '/v1/batches', created('batch_l')),
    await jobs.create(key, '/v1/batches', created('batch_m')),
  ];
  const large = ' '.repeat(9 * 1024 * 1024);
  jobs.provider.paths.set('GET /v1/batches/batch_l', { body: JSON.stringify(completed('batch_l')) + large });
  const { usage: _, ...ended } = completed('batch_m');
  jobs.provider.paths.set('GET /v1/batches/batch_m', { json: { ...ended, output_file_id: 'file-m' } });
  jobs.provider.paths.set('GET /v1/files/file-m/content', { body: line(1) + large + large + line(2) });
  for (const id of [first, second]) {
    expect(await jobs.check(id)).toMatchObject({ state: 'unknown', problem: 'too_large' });
    expect(await jobs.row(id)).toMatchObject({ cost_usd: null, usage_final: false });
    expect(
      await database.query(`SELECT data FROM webhook_event WHERE once = 'job.lost ' || $1`, [id]),
    ).toMatchObject([{ data: { problem: 'too_large' } }]);
  }
});

it('a provider that falls silent, before its response or within it, is given up for this check', async () => {
  const silent = createServer((req, res) => {
    req.resume();
    res.setHeader('content-type', 'application/json');
    if (req.method === 'POST') res.end(JSON.stringify(created(`batch_${req.url!.length}`)));
    else if (req.url!.includes('batch_15')) res.write('{"id":"batch_15"');
  });
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const own = await JobGateway.start({ PROVIDER_URL: url, UPSTREAM_HEADERS_TIMEOUT_MS: '5000' });
  try {
    const { key: caller } = await own.key();
    const ids = [
      await own.send(caller, 'POST', '/v1/batches'),
      await own.send(caller, 'POST', '/v1/a/b/batches'),
    ];
    for (const id of ids) {
      await eventually(async () => (await own.job(id)) !== undefined);
      expect(await own.check(id)).toMatchObject({ state: 'open', problem: 'timeout', tries: 1 });
    }
  } finally {
    await own.stop();
    silent.closeAllConnections();
    silent.close();
  }
});

it('a provider that does not respond keeps the jobs of no other one waiting, however many of its own are due', async () => {
  const mute = await FakeProvider.start();
  await jobs.postern.admin('POST', '/providers', { name: 'mute', url: mute.url, secret: 's-0123456789' });
  let respond!: () => void;
  const responded = new Promise<void>((resolve) => (respond = resolve));
  let count = 0;
  mute.respond(async ({ method, url }) => {
    if (method === 'POST') return { json: created(`batch_m${count++}`) };
    await responded;
    return { json: completed(url.split('/').at(-1)!) };
  });
  for (let i = 0; i < 40; i++) await jobs.send(key, 'POST', '/p/mute/v1/batches');
  const states = () =>
    jobs.postern.database.query<{ state: string; jobs: number }>(
      `SELECT state, count(*)::int AS jobs FROM provider_job WHERE provider = 'mute' GROUP BY 1`,
    );
  await eventually(async () => (await states())[0]?.jobs === 40);
  const id = await jobs.create(key, '/v1/batches', created('batch_prompt'));
  jobs.provider.paths.set('GET /v1/batches/batch_prompt', { json: completed('batch_prompt') });
  // Those of the other provider are older.
  await jobs.postern.database.query(
    `UPDATE provider_job SET next_check_at = now() - CASE provider WHEN 'mute' THEN interval '1 hour' ELSE '0' END
     WHERE provider = 'mute' OR id = $1`,
    [id],
  );
  await eventually(() =>
    Promise.resolve(mute.requests.filter(({ method }) => method === 'GET').length === 4),
  );
  await eventually(async () => (await jobs.job(id))!.state === 'settled');
  expect(await states()).toEqual([{ state: 'open', jobs: 40 }]);
  respond();
  await eventually(async () => (await states())[0]!.state === 'settled');
  await mute.stop();
});

it('a connection that breaks during the results is no end', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_b'));
  jobs.provider.paths.set('GET /v1/batches/batch_b', {
    json: {
      ...created('batch_b'),
      status: 'completed',
      output_file_id: 'file-b',
      request_counts: { completed: 2 },
    },
  });
  jobs.provider.paths.set('GET /v1/files/file-b/content', { body: line(1) + line(2), breaks: true });
  expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'unreachable' });
  jobs.provider.paths.set('GET /v1/files/file-b/content', { body: line(1) + line(2) });
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(id)).toMatchObject({ prompt_tokens: 20 });
});

it('a job without its row is lost, and announced once', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_g'));
  const { database } = jobs.postern;
  await jobs.postern.admin('POST', '/webhooks', { url: 'http://127.0.0.1:9/', events: ['job.lost'] });
  await database.query('DELETE FROM request_log WHERE id = $1', [id]);
  jobs.provider.paths.set('GET /v1/batches/batch_g', { json: completed('batch_g') });
  expect(await jobs.check(id)).toMatchObject({ state: 'unknown', problem: 'row_gone' });
  expect(await jobs.check(id)).toMatchObject({ state: 'unknown', problem: 'row_gone' });
  const events = await database.query(`SELECT data FROM webhook_event WHERE once = 'job.lost ' || $1`, [id]);
  expect(events).toMatchObject([{ data: { request_id: id, problem: 'row_gone' } }]);
  const next = await jobs.create(key, '/v1/batches', created('batch_old'));
  jobs.provider.paths.set('GET /v1/batches/batch_old', { json: created('batch_old') });
  await database.query(`UPDATE provider_job SET started_at = now() - interval '9 days' WHERE id = $1`, [
    next,
  ]);
  expect(await jobs.check(next)).toMatchObject({ state: 'unknown', problem: 'expired' });
  await jobs.check(next);
  expect(
    await database.query(`SELECT data FROM webhook_event WHERE once = 'job.lost ' || $1`, [next]),
  ).toMatchObject([{ data: { request_id: next, provider: 'default', kind: 'batch', problem: 'expired' } }]);
});

it('a provider that is removed and comes back with another secret', async () => {
  const other = await JobProvider.start();
  const provider = { name: 'other', url: other.fake.url, secret: 'first-secret' };
  await jobs.postern.admin('POST', '/providers', provider);
  other.paths.set('POST /v1/batches', { json: created('batch_o') });
  const id = await jobs.send(key, 'POST', '/p/other/v1/batches');
  await eventually(async () => (await jobs.job(id)) !== undefined);
  const { data } = await jobs.postern.admin<{ data: { id: string; name: string }[] }>('GET', '/providers');
  expect(data.map(({ name }) => name)).toContain('other');
  const remove = await fetch(`${jobs.postern.url}/admin/v1/providers/other`, {
    method: 'DELETE',
    headers: { authorization: 'Bearer test-admin-token-0123456789' },
  });
  expect(remove.status).toBe(204);
  expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'provider_unavailable' });
  expect(other.asked('/v1/batches/batch_o')).toEqual([]);
  await jobs.postern.admin('POST', '/providers', { ...provider, secret: 'second-secret' });
  other.paths.set('GET /v1/batches/batch_o', { json: completed('batch_o') });
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(other.asked('/v1/batches/batch_o')[0]!.headers.authorization).toBe('Bearer second-secret');
  await other.fake.stop();
});

it("where callers send credentials of their own, only the caller's request settles", async () => {
  const other = await JobProvider.start();
  await jobs.postern.admin('POST', '/providers', {
    name: 'theirs',
    url: other.fake.url,
    auth: 'client',
    secret: null,
  });
  const call = (method: string, path: string) =>
    fetch(`${jobs.postern.url}/p/theirs${path}`, {
      method,
      headers: {
        'x-gateway-key': key,
        authorization: 'Bearer of-the-caller',
        'content-type': 'application/json',
      },
      ...(method === 'POST' && { body: '{}' }),
    });
  other.paths.set('POST /v1/batches', { json: created('batch_c') });
  const response = await call('POST', '/v1/batches');
  expect(response.status).toBe(200);
  const id = response.headers.get('x-gateway-request-id')!;
  await eventually(async () => (await jobs.job(id)) !== undefined);
  other.paths.set('GET /v1/batches/batch_c', { json: completed('batch_c') });
  const job = await jobs.check(id);
  expect(job).toMatchObject({ state: 'open', problem: null });
  expect(Date.parse(job.next_check_at!)).toBeGreaterThan(Date.now() + 7 * 86_400_000);
  expect(other.asked('/v1/batches/batch_c')).toEqual([]);
  expect((await call('GET', '/v1/batches/batch_c')).status).toBe(200);
  await eventually(async () => (await jobs.job(id))!.state === 'settled');
  expect(await jobs.row(id)).toMatchObject(SETTLED);
  await other.fake.stop();
});

it('what is sealed is not in the database in plain text, and is resealed', async () => {
  const id = await jobs.create(key, '/v1/batches', created('batch_canary'));
  const { database } = jobs.postern;
  const [row] = await database.query<{ text: string }>(
    'SELECT j::text AS text FROM provider_job j WHERE id = $1',
    [id],
  );
  expect(row!.text).not.toContain('batch_canary');
  expect(row!.text).not.toContain(Buffer.from('batch_canary').toString('hex'));
  const rotated = await startTestGateway(
    {
      PROVIDER_URL: jobs.provider.fake.url,
      MASTER_KEY: randomBytes(32).toString('base64'),
      MASTER_KEY_PREVIOUS: MASTER_KEY,
    },
    database,
  );
  try {
    const by = { kind: 'system', name: 'test' } as never;
    const done = await rotated.gateway.app.get(ResealService, { strict: false }).reseal(by);
    expect(done.resealed).toContain(`job ${id}`);
    expect(done.unreadable.filter((name) => name.startsWith('job '))).toEqual([]);
  } finally {
    await rotated.stop();
  }
  // This gateway has the old key only.
  jobs.provider.paths.set('GET /v1/batches/batch_canary', { json: completed('batch_canary') });
  expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'unreadable_secret' });
});

it('a job that could not be stored is stored by a later attempt, and followed then', async () => {
  const own = await JobGateway.start();
  try {
    const { key: caller } = await own.key();
    const keeper = own.postern.gateway.app.get(ProviderJobKeeper, { strict: false });
    let failures = 0;
    const add = keeper.add.bind(keeper);
    keeper.add = () => {
      failures++;
      return Promise.reject(new Error('Postgres is unavailable'));
    };
    own.provider.paths.set('POST /v1/batches', { json: created('batch_j') });
    const id = await own.send(caller, 'POST', '/v1/batches');
    await eventually(() => Promise.resolve(failures > 1));
    expect(await own.job(id)).toBeUndefined();
    keeper.add = add;
    await eventually(async () => (await own.job(id)) !== undefined);
    own.provider.paths.set('GET /v1/batches/batch_j', { json: completed('batch_j') });
    expect(await own.check(id)).toMatchObject({ state: 'settled' });
  } finally {
    await own.stop();
  }
});

it('with JOBS=off nothing is noted, read or asked', async () => {
  const off = await JobGateway.start({ JOBS: 'off' });
  try {
    const { key: caller } = await off.key();
    off.provider.paths.set('POST /v1/batches', { json: created('batch_n') });
    const id = await off.send(caller, 'POST', '/v1/batches');
    await off.row(id);
    expect(await off.jobs()).toEqual([]);
  } finally {
    await off.stop();
  }
});

it('a job stays open while its provider cannot be reached', async () => {
  const silent = await FakeProvider.start();
  await jobs.postern.admin('POST', '/providers', { name: 'silent', url: silent.url, secret: 's-0123456789' });
  silent.respond({ json: created('batch_s') });
  const id = await jobs.send(key, 'POST', '/p/silent/v1/batches');
  await eventually(async () => (await jobs.job(id)) !== undefined);
  await silent.stop();
  expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'unreachable' });
});
