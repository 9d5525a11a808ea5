import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { AzureOpenAI } from 'openai';
import type { FakeRequest, FakeResponse } from '../../src/testing/fake-provider.js';
import { eventually } from '../support/eventually.js';
import { JobGateway } from './job-gateway.js';

// The official SDKs create and ask for the jobs, of responses as their providers document or send them.

let jobs: JobGateway;
let key: string;
beforeAll(async () => {
  jobs = await JobGateway.start();
  ({ key } = await jobs.key());
  const { url } = jobs.provider.fake;
  for (const [name, provider, auth] of [
    ['azure', url, 'api-key'],
    ['azure-v1', `${url}/openai`, 'api-key'],
    ['claude', url, 'x-api-key'],
  ])
    await jobs.postern.admin('POST', '/providers', { name, url: provider, auth, secret: `sk-of-${name}` });
});
afterAll(() => jobs.stop());

const lines = (...all: object[]) => ({ body: all.map((line) => `${JSON.stringify(line)}\n`).join('') });
const jobOf = async (provider: string, kind = 'batch') =>
  eventually(async () => (await jobs.jobs()).find((job) => job.provider === provider && job.kind === kind));

/** As Azure OpenAI responds, which does not know a path without its version. */
const versioned =
  (json: object) =>
  ({ url }: FakeRequest): FakeResponse => {
    const version = new URL(url, 'http://x').searchParams.get('api-version') ?? '';
    if (!/^20\d\d-\d\d-\d\d/.test(version))
      return { status: 404, json: { error: { code: '404', message: 'Resource not found' } } };
    return { json };
  };

/** Sets it for every version. */
function setVersioned(method: string, path: string, json: object): void {
  for (const version of ['', '?api-version=2024-10-21', '?api-version=2025-04-01-preview'])
    jobs.provider.paths.set(`${method} ${path}${version}`, versioned(json));
}

const azureBatch = {
  id: 'batch_6caaf24d-54a5-46be-b1b7-518884fcbdde',
  object: 'batch',
  endpoint: '/chat/completions',
  errors: null,
  input_file_id: 'file-9f3a81d899b4442f98b640e4bc3535dd',
  completion_window: '24h',
  status: 'validating',
  output_file_id: null,
  error_file_id: null,
  created_at: 1722476551,
  in_progress_at: null,
  expires_at: 1722562951,
  finalizing_at: null,
  completed_at: null,
  failed_at: null,
  expired_at: null,
  cancelling_at: null,
  cancelled_at: null,
  request_counts: { total: 0, completed: 0, failed: 0 },
  metadata: null,
};
const azureDone = {
  ...azureBatch,
  status: 'completed',
  output_file_id: 'file-a11e27a2-5a6d-4b1e-a1dd-f6a8d6b1c4e5',
  error_file_id: '',
  request_counts: { total: 2, completed: 2, failed: 0 },
};
const azureLine = (id: string, prompt: number, completion: number) => ({
  custom_id: id,
  response: {
    body: {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'x' } }],
      usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
    },
    request_id: '1',
    status_code: 200,
  },
  error: null,
});

describe('Azure OpenAI', () => {
  const azure = () =>
    new AzureOpenAI({ endpoint: `${jobs.postern.url}/p/azure`, apiKey: key, apiVersion: '2024-10-21' });

  it('settles a batch by its output file, with the version that its paths need', async () => {
    const path = `/openai/batches/${azureBatch.id}`;
    setVersioned('POST', '/openai/batches', azureBatch);
    setVersioned('GET', path, azureBatch);
    const made = await azure().batches.create({
      input_file_id: azureBatch.input_file_id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    });
    const { id } = await jobOf('azure');
    expect(await jobs.check(id)).toMatchObject({ kind: 'batch', state: 'open', problem: null });
    setVersioned('GET', path, azureDone);
    jobs.provider.paths.set(
      `GET /openai/files/${azureDone.output_file_id}/content?api-version=2024-10-21`,
      lines(azureLine('a', 100, 10), azureLine('b', 200, 20)),
    );
    // Its client finds the end first, and the file is asked for at once.
    expect(await azure().batches.retrieve(made.id)).toMatchObject({ status: 'completed' });
    await eventually(async () => (await jobs.job(id))!.state === 'settled');
    expect(await jobs.row(id)).toMatchObject({
      prompt_tokens: 300,
      completion_tokens: 30,
      extra_usage: { service_tier: 'batch' },
    });
    const secrets = jobs.provider.fake.requests.map(({ headers }) => headers['api-key']);
    expect(new Set(secrets)).toEqual(new Set(['sk-of-azure']));
  });

  it.each(['azure', 'azure-v1'])('settles a background response of %s', async (name) => {
    const client =
      name === 'azure'
        ? azure()
        : new OpenAI({ baseURL: `${jobs.postern.url}/p/azure-v1/v1`, apiKey: key, maxRetries: 0 });
    const list = name === 'azure' ? '/openai/responses' : '/openai/v1/responses';
    const response = {
      id: `resp_${name}`,
      object: 'response',
      status: 'queued',
      background: true,
      model: 'm',
      output: [],
      usage: null,
    };
    const set = (method: string, path: string, json: object) =>
      name === 'azure'
        ? setVersioned(method, path, json)
        : jobs.provider.paths.set(`${method} ${path}`, { json });
    set('POST', list, response);
    await client.responses.create({ model: 'm', input: 'x', background: true });
    const { id } = await jobOf(name, 'response');
    set('GET', `${list}/${response.id}`, { ...response, status: 'in_progress' });
    expect(await jobs.check(id)).toMatchObject({ kind: 'response', state: 'open', problem: null });
    const usage = {
      input_tokens: 12,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 34,
      output_tokens_details: { reasoning_tokens: 30 },
      total_tokens: 46,
    };
    set('GET', `${list}/${response.id}`, { ...response, status: 'completed', usage });
    expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
    expect(await jobs.row(id)).toMatchObject({
      prompt_tokens: 12,
      completion_tokens: 34,
      reasoning_tokens: 30,
    });
  });
});

it('settles a batch of Anthropic that its SDK has created and whose results it reads', async () => {
  const claude = new Anthropic({ baseURL: `${jobs.postern.url}/p/claude`, apiKey: key });
  const batch = {
    id: 'msgbatch_013Zva2CMHLNnXjNJJKqJ2EF',
    type: 'message_batch',
    processing_status: 'in_progress',
    request_counts: { processing: 4, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    ended_at: null,
    created_at: '2024-09-24T18:37:24.100435Z',
    expires_at: '2024-09-25T18:37:24.100435Z',
    archived_at: null,
    cancel_initiated_at: null,
    results_url: null,
  };
  const path = `/v1/messages/batches/${batch.id}`;
  const message = (input: number, output: number) => ({
    id: 'msg_014VwiXbi91y3JMjcpyGBHX5',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hello.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: 5,
      cache_read_input_tokens: 7,
      cache_creation: { ephemeral_5m_input_tokens: 5, ephemeral_1h_input_tokens: 0 },
      output_tokens: output,
      service_tier: 'batch',
    },
  });
  jobs.provider.paths.set('POST /v1/messages/batches', { json: batch });
  const params = { model: 'm', max_tokens: 1_024, messages: [{ role: 'user' as const, content: 'Hello' }] };
  await claude.messages.batches.create({ requests: [{ custom_id: 'a', params }] });
  const { id } = await jobOf('claude');
  const ended = {
    ...batch,
    processing_status: 'ended',
    request_counts: { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 1 },
    ended_at: '2024-09-24T19:37:24.100435Z',
    results_url: `${jobs.postern.url}/p/claude${path}/results`,
  };
  jobs.provider.paths.set(`GET ${path}`, { json: ended });
  const error = { type: 'error', error: { type: 'invalid_request_error', message: 'no' } };
  jobs.provider.paths.set(`GET ${path}/results`, {
    headers: { 'content-type': 'application/x-jsonl' },
    ...lines(
      { custom_id: 'a', result: { type: 'succeeded', message: message(10, 20) } },
      { custom_id: 'b', result: { type: 'errored', error } },
      { custom_id: 'c', result: { type: 'expired' } },
      { custom_id: 'd', result: { type: 'succeeded', message: message(30, 40) } },
    ),
  });
  let read = 0;
  for await (const _ of await claude.messages.batches.results(batch.id)) read++;
  expect(read).toBe(4);
  await eventually(async () => (await jobs.job(id))!.state === 'settled');
  expect(await jobs.row(id)).toMatchObject({
    model: 'm',
    prompt_tokens: 10 + 30 + 2 * (5 + 7),
    cached_tokens: 14,
    cache_write_tokens: 10,
    completion_tokens: 60,
    extra_usage: { service_tier: 'batch' },
  });
  const own = jobs.provider.asked(`${path}/results`).at(-1)!;
  expect(own.headers).toMatchObject({ 'x-api-key': 'sk-of-claude', 'anthropic-version': '2023-06-01' });
});

it('settles a batch of Mistral: only what succeeded is in its output file', async () => {
  const batch = {
    id: '2b1b2f3e-8d0c-4bd4-8c34-9c3f9a3b0d11',
    object: 'batch',
    input_files: ['8e6d2b0e-6e4b-4a8b-9a1a-0d1f0c5f7c11'],
    metadata: {},
    endpoint: '/v1/chat/completions',
    model: 'm',
    agent_id: null,
    output_file: null,
    error_file: null,
    errors: [],
    outputs: null,
    status: 'QUEUED',
    created_at: 1732000000,
    total_requests: 3,
    completed_requests: 0,
    succeeded_requests: 0,
    failed_requests: 0,
    started_at: null,
    completed_at: null,
  };
  const id = await jobs.create(key, '/v1/batch/jobs', batch, { model: 'm' });
  const path = `GET /v1/batch/jobs/${batch.id}`;
  for (const status of ['QUEUED', 'RUNNING', 'CANCELLATION_REQUESTED']) {
    jobs.provider.paths.set(path, { json: { ...batch, status } });
    expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: null });
  }
  const output = '0d8d5c3a-3f7e-4f0d-8c9e-55f2d4f0a111';
  jobs.provider.paths.set(path, {
    json: {
      ...batch,
      status: 'TIMEOUT_EXCEEDED',
      completed_requests: 3,
      succeeded_requests: 2,
      failed_requests: 1,
      output_file: output,
      errors: [{ message: 'no', count: 1 }],
    },
  });
  jobs.provider.paths.set(
    `GET /v1/files/${output}/content`,
    lines({ id: '1', ...azureLine('a', 10, 1) }, { id: '2', ...azureLine('b', 20, 2) }),
  );
  expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
  expect(await jobs.row(id)).toMatchObject({ model: 'm', prompt_tokens: 30, completion_tokens: 3 });
});

describe('Gemini', () => {
  const path = '/v1beta/models/m:batchGenerateContent';
  const type = 'type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch';
  const batch = (id: string, state: string, more: object = {}) => ({
    name: `batches/${id}`,
    metadata: {
      '@type': type,
      model: 'models/m',
      displayName: 'my batch',
      createTime: '2026-01-06T11:09:11.943530657Z',
      batchStats: { requestCount: '2', pendingRequestCount: '2' },
      state,
      name: `batches/${id}`,
      ...more,
    },
  });
  const response = (prompt: number, candidates: number, thoughts: number, text = 'x') => ({
    candidates: [{ content: { parts: [{ text }], role: 'model' }, finishReason: 'STOP', index: 0 }],
    usageMetadata: {
      promptTokenCount: prompt,
      candidatesTokenCount: candidates,
      totalTokenCount: prompt + candidates + thoughts,
      thoughtsTokenCount: thoughts,
    },
    modelVersion: 'm',
  });
  const create = async (id: string) => {
    const made = await jobs.create(key, path, batch(id, 'BATCH_STATE_PENDING'), {}, `/p/default${path}`);
    jobs.provider.paths.set(`GET /v1beta/batches/${id}`, { json: batch(id, 'BATCH_STATE_RUNNING') });
    expect(await jobs.check(made)).toMatchObject({ state: 'open', problem: null });
    return made;
  };

  it.each([
    ['small', 'x'],
    ['larger than what is read of its metadata', 'x'.repeat(20_000)],
  ])('settles a batch whose responses, here %s, stand in it twice', async (_, text) => {
    const name = `inline${text.length}`;
    const id = await create(name);
    const inlined = {
      inlinedResponses: {
        inlinedResponses: [
          { metadata: { key: 'a' }, response: response(52, 28, 305, text) },
          { metadata: { key: 'b' }, error: { code: 3, message: 'no' } },
        ],
      },
    };
    const batchStats = { requestCount: '2', successfulRequestCount: '1', failedRequestCount: '1' };
    const ended = batch(name, 'BATCH_STATE_SUCCEEDED', { output: inlined, batchStats });
    jobs.provider.paths.set(`GET /v1beta/batches/${name}`, {
      json: { ...ended, done: true, response: inlined },
    });
    expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
    expect(await jobs.row(id)).toMatchObject({
      model: 'm',
      prompt_tokens: 52,
      completion_tokens: 333,
      reasoning_tokens: 305,
    });
  });

  it('settles a batch by its file of responses, once all of them are in it', async () => {
    const id = await create('file');
    const output = {
      '@type': `${type}Output`,
      responsesFile: 'files/batch-leg9wy9p5df66syjxke2eq4xfjqcwp47',
    };
    const batchStats = { requestCount: '2', successfulRequestCount: '2' };
    const ended = batch('file', 'BATCH_STATE_SUCCEEDED', { output, batchStats });
    // Its slashes are escaped.
    const body = JSON.stringify({ ...ended, done: true, response: output }).replaceAll('/', '\\/');
    jobs.provider.paths.set('GET /v1beta/batches/file', { body });
    const file = `GET /download/v1beta/${output.responsesFile}:download?alt=media`;
    jobs.provider.paths.set(file, lines({ key: 'a', response: response(1, 2, 3) }));
    expect(await jobs.check(id)).toMatchObject({ state: 'open', problem: 'incomplete' });
    jobs.provider.paths.set(
      file,
      lines({ key: 'a', response: response(1, 2, 3) }, { key: 'b', response: response(10, 20, 30) }),
    );
    expect(await jobs.check(id)).toMatchObject({ state: 'settled' });
    expect(await jobs.row(id)).toMatchObject({ prompt_tokens: 11, completion_tokens: 55 });
  });

  it('a batch that failed costs nothing; one that succeeded without its responses stays unknown', async () => {
    const failed = await create('failed');
    const stats = { batchStats: { requestCount: '2', failedRequestCount: '2' } };
    const error = { code: 3, message: 'no' };
    jobs.provider.paths.set('GET /v1beta/batches/failed', {
      json: { ...batch('failed', 'BATCH_STATE_FAILED', stats), done: true, error },
    });
    expect(await jobs.check(failed)).toMatchObject({ state: 'settled' });
    expect(await jobs.row(failed)).toMatchObject({ cost_usd: '0.000000000' });
    for (const [name, state, more] of [
      ['gone', 'BATCH_STATE_SUCCEEDED', {}],
      ['cancelled', 'BATCH_STATE_CANCELLED', { batchStats: { successfulRequestCount: '1' } }],
      ['hidden', 'BATCH_STATE_CANCELLED', { output: 'x'.repeat(20_000) }],
    ] as const) {
      const id = await create(name);
      jobs.provider.paths.set(`GET /v1beta/batches/${name}`, {
        json: { ...batch(name, state, more), done: true },
      });
      expect(await jobs.check(id)).toMatchObject({ state: 'unknown', problem: 'no_usage' });
      expect(await jobs.row(id)).toMatchObject({ cost_usd: null });
    }
  });

  it('a request that cancels a batch is free of charge', async () => {
    jobs.provider.paths.set('POST /v1beta/batches/any:cancel', { json: {} });
    const id = await jobs.send(key, 'POST', '/p/default/v1beta/batches/any:cancel');
    expect(await jobs.row(id)).toMatchObject({ usage_final: null, cost_high_usd: null });
  });
});
