import { eventually } from '../support/eventually.js';
import { JobGateway } from './job-gateway.js';

let jobs: JobGateway;
let key: string;
beforeAll(async () => {
  jobs = await JobGateway.start();
  ({ key } = await jobs.key());
});
afterAll(() => jobs.stop());

const lines = (...all: object[]) => ({ body: all.map((line) => `${JSON.stringify(line)}\n`).join('') });
const chat = (input: number, output: number, model = 'm') => ({
  model,
  usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
});

it('settles a batch of OpenAI by the sum in the batch', async () => {
  const created = { id: 'batch_1', object: 'batch', status: 'validating', request_counts: { completed: 0 } };
  const id = await jobs.create(key, '/v1/batches', created);
  expect(await jobs.job(id)).toMatchObject({ kind: 'batch', state: 'open', tries: 0, problem: null });
  expect(await jobs.row(id)).toMatchObject({ prompt_tokens: null, cost_usd: null, usage_final: false });
  jobs.provider.paths.set('GET /v1/batches/batch_1', { json: { ...created, status: 'in_progress' } });
  expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: null, tries: 1 });
  jobs.provider.paths.set('GET /v1/batches/batch_1', {
    json: {
      ...created,
      status: 'completed',
      output_file_id: 'file-1',
      request_counts: { total: 3, completed: 3, failed: 0 },
      model: 'm',
      usage: {
        input_tokens: 1_000,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 200,
        output_tokens_details: { reasoning_tokens: 50 },
        total_tokens: 1_200,
      },
    },
  });
  expect(await jobs.check(id)).toMatchObject({ state: 'settled', problem: null, next_check_at: null });
  expect(await jobs.row(id)).toMatchObject({
    model: 'm',
    prompt_tokens: 1_000,
    completion_tokens: 200,
    reasoning_tokens: 50,
    usage_final: true,
    cost_usd: '0.001500000',
    extra_usage: { service_tier: 'batch' },
  });
  const [asked] = jobs.provider.asked('/v1/batches/batch_1');
  expect(asked!.headers.authorization).toBe('Bearer sk-provider-secret-0123456789');
  expect(jobs.provider.asked('/v1/files/file-1/content')).toEqual([]);
});

it('settles a batch without a sum by its output file, also of several models', async () => {
  const created = { id: 'batch_2', object: 'batch', status: 'validating' };
  const id = await jobs.create(key, '/v1/batches', created);
  jobs.provider.paths.set('GET /v1/batches/batch_2', {
    json: { ...created, status: 'completed', output_file_id: 'file-2', request_counts: { completed: 2 } },
  });
  jobs.provider.paths.set(
    'GET /v1/files/file-2/content',
    lines(
      { custom_id: 'a', response: { status_code: 200, body: chat(100, 10) } },
      { custom_id: 'b', response: { status_code: 400, body: { error: { message: 'no' } } } },
      { custom_id: 'c', response: { status_code: 200, body: chat(300, 20, 'n') } },
    ),
  );
  await jobs.check(id);
  expect(await jobs.row(id)).toMatchObject({
    model: null,
    prompt_tokens: 400,
    completion_tokens: 30,
    cost_usd: '0.000350000',
  });
});

it('settles a batch of Mistral by its output file', async () => {
  const created = { id: '5f0c', object: 'batch', status: 'QUEUED', model: 'm', total_requests: 1 };
  const id = await jobs.create(key, '/v1/batch/jobs', created, { model: 'm' });
  expect(await jobs.row(id)).toMatchObject({ model: 'm', usage_final: false, cost_high_usd: null });
  jobs.provider.paths.set('GET /v1/batch/jobs/5f0c', {
    json: { ...created, status: 'SUCCESS', succeeded_requests: 1, output_file: 'out-1' },
  });
  jobs.provider.paths.set(
    'GET /v1/files/out-1/content',
    lines({ custom_id: '0', response: { status_code: 200, body: chat(10, 10) }, error: null }),
  );
  await jobs.check(id);
  expect(await jobs.row(id)).toMatchObject({ model: 'm', prompt_tokens: 10, cost_usd: '0.000055000' });
});

it('settles a batch of Anthropic by its results, with the cache', async () => {
  const created = { id: 'msgbatch_1', type: 'message_batch', processing_status: 'in_progress' };
  const id = await jobs.create(key, '/v1/messages/batches', created);
  jobs.provider.paths.set('GET /v1/messages/batches/msgbatch_1', {
    json: {
      ...created,
      processing_status: 'ended',
      request_counts: { processing: 0, succeeded: 1, errored: 1, canceled: 0, expired: 0 },
      // It is not followed: the results are at the provider's own origin.
      results_url: 'http://127.0.0.1:9/stolen',
    },
  });
  const usage = {
    input_tokens: 10,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 90,
    output_tokens: 10,
    service_tier: 'batch',
  };
  jobs.provider.paths.set(
    'GET /v1/messages/batches/msgbatch_1/results',
    lines(
      { custom_id: 'a', result: { type: 'succeeded', message: { type: 'message', model: 'm', usage } } },
      { custom_id: 'b', result: { type: 'errored', error: { type: 'invalid_request' } } },
    ),
  );
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(id)).toMatchObject({
    model: 'm',
    prompt_tokens: 100,
    cached_tokens: 90,
    completion_tokens: 10,
  });
});

it('settles a batch of Gemini with its responses inside, and one with a file', async () => {
  const path = '/v1beta/models/m:batchGenerateContent';
  const of = (id: string) => ({
    name: `batches/${id}`,
    metadata: { model: 'models/m', state: 'BATCH_STATE_PENDING' },
  });
  const usageMetadata = { promptTokenCount: 20, candidatesTokenCount: 4, totalTokenCount: 24 };
  const inlined = { response: { candidates: [], usageMetadata } };
  const one = await jobs.create(key, path, of('one'), {}, `/p/default${path}`);
  jobs.provider.paths.set('GET /v1beta/batches/one', {
    json: {
      name: 'batches/one',
      metadata: { model: 'models/m', state: 'BATCH_STATE_SUCCEEDED' },
      done: true,
      response: { inlinedResponses: { inlinedResponses: [inlined, { error: { code: 3 } }, inlined] } },
    },
  });
  await jobs.check(one);
  expect(await jobs.row(one)).toMatchObject({
    model: 'm',
    prompt_tokens: 40,
    completion_tokens: 8,
    cost_usd: '0.000060000',
  });
  const two = await jobs.create(key, path, of('two'), {}, `/p/default${path}`);
  jobs.provider.paths.set('GET /v1beta/batches/two', {
    json: { ...of('two'), done: true, response: { responsesFile: 'files/out' } },
  });
  jobs.provider.paths.set(
    'GET /download/v1beta/files/out:download?alt=media',
    lines({ key: 'a', response: { candidates: [], usageMetadata, modelVersion: 'm' } }),
  );
  await jobs.check(two);
  expect(await jobs.row(two)).toMatchObject({ prompt_tokens: 20, completion_tokens: 4 });
});

it('settles a background response, also one whose stream its client has left', async () => {
  const created = {
    id: 'resp_1',
    object: 'response',
    status: 'queued',
    background: true,
    model: 'm',
    usage: null,
  };
  const id = await jobs.create(key, '/v1/responses', created, { model: 'm', background: true });
  expect(await jobs.job(id)).toMatchObject({ kind: 'response', model: 'm' });
  const usage = { input_tokens: 50, output_tokens: 5, total_tokens: 55 };
  jobs.provider.paths.set('GET /v1/responses/resp_1', { json: { ...created, status: 'completed', usage } });
  await jobs.check(id);
  // No batch: the usual price.
  expect(await jobs.row(id)).toMatchObject({
    prompt_tokens: 50,
    completion_tokens: 5,
    cost_usd: '0.000100000',
  });

  jobs.provider.paths.set('POST /v1/responses', {
    sse: [
      {
        event: 'response.created',
        data: { type: 'response.created', response: { ...created, id: 'resp_2' } },
      },
    ],
  });
  const streamed = await jobs.send(key, 'POST', '/v1/responses', {
    model: 'm',
    background: true,
    stream: true,
  });
  await eventually(async () => (await jobs.job(streamed)) !== undefined);
  jobs.provider.paths.set('GET /v1/responses/resp_2', {
    json: { ...created, id: 'resp_2', status: 'incomplete', usage },
  });
  expect(await jobs.check(streamed)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(streamed)).toMatchObject({ prompt_tokens: 50, completion_tokens: 5 });
});

it('makes no job of a response that has ended, and of one that goes on only for its client', async () => {
  const usage = { input_tokens: 50, output_tokens: 5, total_tokens: 55 };
  const response = { object: 'response', status: 'completed', model: 'm', usage };
  jobs.provider.paths.set('POST /v1/responses', { json: { ...response, id: 'resp_3', background: true } });
  const ended = await jobs.send(key, 'POST', '/v1/responses', { model: 'm' });
  jobs.provider.paths.set('POST /v1/responses', {
    json: { ...response, id: 'resp_4', status: 'in_progress', background: false, usage: null },
  });
  const own = await jobs.send(key, 'POST', '/v1/responses', { model: 'm' });
  expect(await jobs.row(ended)).toMatchObject({ prompt_tokens: 50 });
  expect(await jobs.row(own)).toMatchObject({ prompt_tokens: null });
  const background = { ...response, id: 'resp_6', background: true };
  jobs.provider.paths.set('POST /v1/responses', {
    sse: [
      { type: 'response.created', response: { ...background, status: 'queued', usage: null } },
      { type: 'response.completed', response: background },
    ],
    eventDelayMs: 50,
  });
  const whole = await jobs.send(key, 'POST', '/v1/responses', { model: 'm', background: true, stream: true });
  expect(await jobs.row(whole)).toMatchObject({ prompt_tokens: 50, usage_final: true });
  const ids = (await jobs.jobs()).map(({ id }) => id);
  expect(ids).not.toContain(ended);
  expect(ids).not.toContain(whole);
  expect(ids).not.toContain(own);
});

it('a batch that failed before it ran costs nothing; one whose end reports nothing stays unknown', async () => {
  const created = { id: 'batch_5', object: 'batch', status: 'validating' };
  const failed = await jobs.create(key, '/v1/batches', created);
  jobs.provider.paths.set('GET /v1/batches/batch_5', {
    json: { ...created, status: 'failed', output_file_id: null },
  });
  expect(await jobs.check(failed)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(failed)).toMatchObject({
    prompt_tokens: 0,
    completion_tokens: 0,
    cost_usd: '0.000000000',
  });
  const response = {
    id: 'resp_5',
    object: 'response',
    status: 'queued',
    background: true,
    model: 'm',
    usage: null,
  };
  const cancelled = await jobs.create(key, '/v1/responses', response, { model: 'm' });
  jobs.provider.paths.set('GET /v1/responses/resp_5', { json: { ...response, status: 'cancelled' } });
  expect(await jobs.check(cancelled)).toMatchObject({ state: 'unknown', problem: 'no_usage' });
  expect(await jobs.row(cancelled)).toMatchObject({ prompt_tokens: null, cost_usd: null });
});

it('settles a video by its seconds and its size; one that failed costs nothing', async () => {
  await jobs.postern.admin('POST', '/prices', {
    catalog: 'default',
    model: 'v',
    extra: { video_seconds: '100' },
    tiers: [{ size: '1792x1024', extra: { video_seconds: '500' } }],
  });
  const created = {
    id: 'video_1',
    object: 'video',
    status: 'queued',
    model: 'v',
    seconds: '8',
    size: '1280x720',
  };
  const id = await jobs.create(key, '/v1/videos', created, { model: 'v', seconds: '8' });
  expect(await jobs.job(id)).toMatchObject({ kind: 'video', model: 'v' });
  jobs.provider.paths.set('GET /v1/videos/video_1', {
    json: { ...created, status: 'completed', progress: 100 },
  });
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(id)).toMatchObject({
    model: 'v',
    cost_usd: '0.800000000',
    extra_usage: { video_seconds: 8, size: '1280x720' },
  });
  const failed = await jobs.create(key, '/v1/videos', { ...created, id: 'video_2' }, { model: 'v' });
  jobs.provider.paths.set('GET /v1/videos/video_2', {
    json: { ...created, id: 'video_2', status: 'failed' },
  });
  await jobs.check(failed);
  expect(await jobs.row(failed)).toMatchObject({ cost_usd: '0.000000000' });
});
