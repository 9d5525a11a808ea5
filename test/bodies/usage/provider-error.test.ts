import fc from 'fast-check';
import { copyFor, readUsage } from '../../../src/bodies/usage/usage-reader.js';
import { errorOfHeader } from '../../../src/bodies/usage/provider-error.js';
import { check } from '../../support/property.js';
import { awsMessage } from './recorded-formats.js';

const JSON_TYPE = 'application/json';
const SSE = 'text/event-stream';

async function errorOf(
  body: unknown,
  isFailed = true,
  contentType = JSON_TYPE,
  endpoint = '/v1/chat/completions',
) {
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const copy = copyFor(contentType, null, endpoint, isFailed);
  copy?.add(bytes);
  const { error } = await readUsage(contentType, endpoint, copy, null, isFailed);
  return error === undefined ? null : [error.type, error.code];
}

const events = (...data: unknown[]) =>
  data.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');

describe('the error of a JSON response', () => {
  it.each<[string, unknown, [string | null, string | null] | null]>([
    [
      'OpenAI',
      {
        error: {
          message: 'You exceeded …',
          type: 'insufficient_quota',
          param: null,
          code: 'insufficient_quota',
        },
      },
      ['insufficient_quota', 'insufficient_quota'],
    ],
    [
      'OpenAI without a code',
      { error: { type: 'invalid_request_error', code: null } },
      ['invalid_request_error', null],
    ],
    ['Azure', { error: { code: 'DeploymentNotFound', message: 'The API …' } }, [null, 'DeploymentNotFound']],
    [
      'Anthropic',
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
      ['overloaded_error', null],
    ],
    [
      'Gemini',
      { error: { code: 429, message: 'Quota', status: 'RESOURCE_EXHAUSTED' } },
      ['RESOURCE_EXHAUSTED', '429'],
    ],
    ['Gemini without alt=sse', [{ error: { code: 503, status: 'UNAVAILABLE' } }], ['UNAVAILABLE', '503']],
    [
      'Bedrock',
      { __type: 'com.amazon.coral.service#ThrottlingException', message: 'x' },
      ['ThrottlingException', null],
    ],
    [
      'Mistral',
      { object: 'error', message: 'x', type: 'invalid_model', param: null, code: '1500' },
      ['invalid_model', '1500'],
    ],
    [
      'vLLM',
      { object: 'error', message: 'x', type: 'BadRequestError', code: 400 },
      ['BadRequestError', '400'],
    ],
    ['text in place of an error', { error: 'model not found' }, null],
    ['FastAPI', { detail: 'Not Found' }, null],
    ['a sentence as the code', { error: { type: 'x', code: 'The key sk-1 is wrong' } }, ['x', null]],
    ['a code that is too long', { error: { code: 'x'.repeat(65) } }, null],
    ['a code of 64 characters', { error: { code: 'x'.repeat(64) } }, [null, 'x'.repeat(64)]],
    ['an object as the code', { error: { code: { a: 1 }, type: ['a'] } }, null],
    ['no JSON', '<html>', null],
    ['nothing', '', null],
  ])('of %s', async (_, body, expected) => {
    expect(await errorOf(body)).toEqual(expected);
  });

  it('is read on every endpoint if the status says that it is one, else where tokens are read', async () => {
    const body = { error: { type: 'not_found_error', code: 'x' } };
    expect(await errorOf(body, true, JSON_TYPE, '/v1/files/f')).toEqual(['not_found_error', 'x']);
    expect(await errorOf(body, false, JSON_TYPE, '/v1/files/f')).toBeNull();
    // OpenAI's responses fail with 200.
    const failed = { id: 'r', status: 'failed', error: { code: 'server_error', message: 'x' }, usage: null };
    expect(await errorOf(failed, false, JSON_TYPE, '/v1/responses')).toEqual([null, 'server_error']);
  });

  it('is not taken from a response without one', async () => {
    const message = { type: 'message', code: 'x', usage: { input_tokens: 1, output_tokens: 1 } };
    expect(await errorOf(message, false, JSON_TYPE, '/v1/messages')).toBeNull();
    expect(await errorOf({ type: 'message', code: 'x' }, false, JSON_TYPE, '/v1/messages')).toBeNull();
  });
});

describe('the error of a stream', () => {
  const delta = { choices: [{ delta: { content: '{"error":{"code":"quoted"}}' } }] };
  it.each<[string, unknown[], [string | null, string | null] | null]>([
    ['OpenAI chat', [delta, { error: { type: 'server_error', code: 'c' } }], ['server_error', 'c']],
    [
      'OpenAI chat with an end',
      [delta, { error: { type: 'server_error' } }, '[DONE]'],
      ['server_error', null],
    ],
    [
      'Anthropic',
      [{ type: 'ping' }, { type: 'error', error: { type: 'overloaded_error' } }],
      ['overloaded_error', null],
    ],
    [
      'OpenAI responses',
      [{ type: 'error', code: 'rate_limit_exceeded', message: 'x' }],
      [null, 'rate_limit_exceeded'],
    ],
    [
      'OpenAI responses, at the end',
      [{ type: 'response.failed', response: { id: 'r', status: 'failed', error: { code: 'server_error' } } }],
      [null, 'server_error'],
    ],
    [
      'Gemini',
      [{ usageMetadata: {} }, { error: { code: 503, status: 'UNAVAILABLE' } }],
      ['UNAVAILABLE', '503'],
    ],
    ['a text about errors', [delta, delta, '[DONE]'], null],
    [
      'a response that did not fail',
      [
        {
          type: 'response.completed',
          response: { error: null, usage: { input_tokens: 1, output_tokens: 1 } },
        },
      ],
      null,
    ],
  ])('of %s', async (_, data, expected) => {
    expect(await errorOf(events(...data), false, SSE, '/v1/responses')).toEqual(expected);
  });

  it('is in the header of an event of Bedrock, whose payload has only a message', async () => {
    const text = awsMessage('contentBlockDelta', { delta: { text: 'x' } });
    const whole = Buffer.concat([
      text,
      awsMessage('throttlingException', { message: 'Too many' }, 'exception'),
    ]);
    const stream = (body: Buffer) =>
      errorOf(body, false, 'application/vnd.amazon.eventstream', '/model/m/converse-stream');
    expect(await stream(whole)).toEqual(['throttlingException', null]);
    expect(await stream(text)).toBeNull();
  });
});

it('reads the name in x-amzn-errortype, and nothing behind it', () => {
  const url = 'ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/';
  expect(errorOfHeader(url)).toEqual({ type: 'ThrottlingException', code: null });
  expect(errorOfHeader(undefined)).toBeNull();
  expect(errorOfHeader('a sentence')).toBeNull();
});

it('is found in the objects that carry it, and in no deeper ones', async () => {
  const error = { code: 'c' };
  const inside = (levels: number) =>
    Array.from({ length: levels }).reduce<object>((inner) => ({ response: inner }), { error });
  expect(await errorOf({ response: { status_details: { error } } })).toEqual([null, 'c']);
  expect(await errorOf(inside(2))).toEqual([null, 'c']);
  expect(await errorOf(inside(3))).toBeNull();
  // Would overflow the stack, and take time by the square of it.
  const deep = `${'{"response":'.repeat(10_000)}{}${'}'.repeat(10_000)}`;
  expect(await errorOf(deep)).toBeNull();
});

it('never yields anything but short words', async () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.constant(null),
    fc.constant({ a: 'b' }),
  );
  const members = fc.dictionary(fc.constantFrom('type', 'code', 'status', '__type', 'error'), value);
  await check(
    fc.asyncProperty(members, members, fc.boolean(), async (top, error, isFailed) => {
      for (const body of [{ ...top, error }, top, [{ error }]]) {
        const words = [await errorOf(body, isFailed), await errorOf(events(body), isFailed, SSE)].flat();
        for (const word of words) expect(word ?? 'x').toMatch(/^[\w.:-]{1,64}$/);
      }
    }),
    { numRuns: 300 },
  );
});
