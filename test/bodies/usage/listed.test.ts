import { gzipSync } from 'node:zlib';
import { counterFor } from '../../../src/bodies/usage/listed/listed-counter.js';
import type { ExtraUsage } from '../../../src/bodies/usage/token-usage.js';
import { type Answer, read } from './read.js';

/** Text that looks like what is counted, with all kinds of escapes. */
const DECOY =
  '\\ " \\" {"type":"web_search_call"}, "output":[{"type":"file_search_call"}] response.output_item.done \n é \u2028';
const USAGE = { input_tokens: 9, output_tokens: 5, total_tokens: 14 };
const ITEMS = [
  { id: 'rs_1', type: 'reasoning', summary: [{ type: 'web_search_call', text: DECOY }] },
  { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: DECOY } },
  { type: 'web_search_call', action: { type: 'open_page', url: 'https://a.example' }, status: 'completed' },
  { id: 'ws_3', type: 'web_search_call', status: 'failed', action: { type: 'search' } },
  { id: 'ws_4', type: 'web_search_call', status: 'completed' },
  { id: 'fs_1', type: 'file_search_call', status: 'completed', queries: [DECOY], results: null },
  { id: 'ci_1', type: 'code_interpreter_call', code: DECOY, container_id: 'cntr_a', outputs: [] },
  { id: 'ci_2', type: 'code_interpreter_call', code: '1', container_id: 'cntr_a', outputs: [] },
  { id: 'ci_3', type: 'code_interpreter_call', container_id: 'cntr_b', status: 'failed' },
  { id: 'fc_1', type: 'function_call', name: 'web_search_call', arguments: DECOY },
  { id: 'm_1', type: 'message', content: [{ type: 'output_text', text: DECOY }], status: 'completed' },
];
const COUNTS = { web_searches: 2, file_searches: 1, code_sessions: 2 };
const EVENT_STREAM = 'text/event-stream; charset=utf-8';
const PADDING = 'x'.repeat(3_000);

const responseOf = (items: unknown[], more = {}) => ({
  id: 'r',
  object: 'response',
  model: 'gpt-5',
  tools: [{ type: 'web_search' }, { type: 'file_search' }, { type: 'code_interpreter' }],
  metadata: { type: 'web_search_call', output: DECOY },
  ...more,
  output: items,
  usage: USAGE,
});

const event = (data: { type: string }, hasName = true) =>
  `${hasName ? `event: ${data.type}\n` : ''}data: ${JSON.stringify(data)}\n\n`;

/** @param deltas before each item */
function streamOf(items: unknown[], deltas = 0): string {
  const done = items.map((item, i) => {
    const delta = event({ type: 'response.output_text.delta', delta: PADDING + DECOY } as { type: string });
    const call = event({ type: 'response.web_search_call.completed', item_id: 'x' } as { type: string });
    const end = { type: 'response.output_item.done', output_index: i, item };
    return `${delta.repeat(deltas)}${call}${event(end, i % 2 === 0)}`;
  });
  const created = event({ type: 'response.created', response: responseOf([]) } as { type: string });
  const completed = event({ type: 'response.completed', response: responseOf(items) } as { type: string });
  return created + done.join('') + completed;
}

const extraOf = async (answer: Answer, ...cuts: number[]): Promise<ExtraUsage | null> =>
  (await read(answer, ...cuts)).extra;
const responses = (body: string, contentType = 'application/json'): Answer => ({
  endpoint: '/v1/responses',
  contentType,
  body,
});

/** Counts alone, without what is read from a copy. */
function counted(endpoint: string, contentType: string, chunks: Buffer[], model: string | null = null) {
  const counter = counterFor(contentType, endpoint)!;
  for (const chunk of chunks) counter.add(chunk);
  return counter.end(model);
}

describe.each([
  ['in one document', 'application/json', JSON.stringify(responseOf(ITEMS))],
  ['in a document with spaces', 'application/json', JSON.stringify(responseOf(ITEMS), null, 2)],
  ['in a stream', EVENT_STREAM, streamOf(ITEMS)],
  ['in a stream with carriage returns', EVENT_STREAM, streamOf(ITEMS).replaceAll('\n', '\r\n')],
])('the tools that OpenAI ran, %s', (_, contentType, body) => {
  const bytes = Buffer.from(body);

  it('are counted from a small response', async () => {
    expect(await extraOf(responses(body, contentType))).toEqual(COUNTS);
  });

  it('are counted wherever the response is cut into chunks', () => {
    for (let at = 0; at <= bytes.length; at++) {
      const chunks = [bytes.subarray(0, at), bytes.subarray(at)];
      expect([at, counted('/v1/responses', contentType, chunks)]).toEqual([at, COUNTS]);
    }
    for (const size of [1, 2, 3, 7]) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      expect(counted('/v1/responses', contentType, chunks)).toEqual(COUNTS);
    }
  });
});

describe('the tools in a response that is larger than its copy', () => {
  const large = JSON.stringify(responseOf([...ITEMS, { type: 'message', content: PADDING.repeat(90) }]));
  const longStream = streamOf(ITEMS, 20);

  it.each([
    ['of one document', responses(large)],
    ['of a stream', responses(longStream, EVENT_STREAM)],
    [
      'of a compressed stream',
      { ...responses('', EVENT_STREAM), contentEncoding: 'gzip', body: gzipSync(longStream) },
    ],
  ])('%s are counted', async (_, answer) => {
    expect(answer.body.length + large.length).toBeGreaterThan(131_072);
    expect(await extraOf(answer)).toEqual(COUNTS);
    const cuts = Array.from({ length: 300 }, (_, i) => 131_072 - 150 + i).filter(
      (at) => at < answer.body.length,
    );
    expect(await extraOf(answer, ...cuts)).toEqual(COUNTS);
  });

  it('are counted if an item is larger than the copy itself', async () => {
    const code = { type: 'code_interpreter_call', code: PADDING.repeat(60), container_id: 'cntr_c' };
    expect(await extraOf(responses(streamOf([...ITEMS, code]), EVENT_STREAM))).toEqual({
      ...COUNTS,
      code_sessions: 3,
    });
  });

  it('are not certain if a container has no name', async () => {
    const items = [{ type: 'code_interpreter_call' }, ...ITEMS];
    expect(await extraOf(responses(streamOf(items, 20), EVENT_STREAM))).toEqual({
      ...COUNTS,
      uncounted_tools: 1,
    });
    expect(await extraOf(responses(JSON.stringify(responseOf(items))))).toEqual({
      ...COUNTS,
      uncounted_tools: 1,
    });
  });

  it('are none if none was run', async () => {
    const items = [{ type: 'message', content: PADDING.repeat(90) }];
    expect(await extraOf(responses(JSON.stringify(responseOf(items))))).toBeNull();
    expect(await extraOf(responses(streamOf(items, 40), EVENT_STREAM))).toBeNull();
  });
});

describe('images', () => {
  const image = (name: string, text: string) => ({ [name]: text, revised_prompt: DECOY });
  const images = (data: unknown[], more = {}): Answer => ({
    endpoint: '/v1/images/generations',
    body: JSON.stringify({ created: 1, data, ...more }),
  });
  const traits = { output_format: 'png', quality: 'high', size: '1024x1536' };

  it('are counted, with their size and quality if the response has them', async () => {
    const url = image('url', 'https://images.example/1.png');
    expect(await extraOf(images([url, url]))).toEqual({ images: 2 });
    expect(await extraOf(images([url], traits))).toEqual({ images: 1, size: '1024x1536', quality: 'high' });
    expect(await extraOf(images([]))).toBeNull();
    const usage = { input_tokens: 5, output_tokens: 6, total_tokens: 11 };
    expect(await read(images([url], { ...traits, usage }))).toMatchObject({
      promptTokens: 5,
      extra: { images: 1 },
    });
  });

  it('are counted in a response of megabytes', async () => {
    const large = image('b64_json', 'iVBORw0KGgo/+'.repeat(200_000));
    const answer = images([large, large, large], traits);
    expect(await extraOf(answer, 10, 65_536, 131_072, 131_073, 3_000_000)).toEqual({
      images: 3,
      size: '1024x1536',
      quality: 'high',
    });
  });

  it('are counted in a stream, without the partial ones', async () => {
    const b64_json = 'iVBORw0KGgo/+'.repeat(20_000);
    const streamed = (type: string) => event({ type, b64_json, ...traits } as { type: string });
    const body =
      streamed('image_generation.partial_image') +
      streamed('image_generation.completed') +
      streamed('image_generation.completed');
    const answer = { ...images([]), contentType: EVENT_STREAM, body };
    expect(await extraOf(answer)).toEqual({ images: 2, size: '1024x1536', quality: 'high' });
    const small = { ...answer, body: body.replaceAll(b64_json, 'aa') };
    for (let at = 0; at < small.body.length; at++)
      expect(await extraOf(small, at)).toEqual({ images: 2, size: '1024x1536', quality: 'high' });
  });
});

describe('the searches of Gemini', () => {
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 6, totalTokenCount: 11 };
  const grounded = (model: string, queries: string[], text = 'a') => ({
    candidates: [
      {
        content: { parts: [{ text: `${text} "webSearchQueries":["no"]` }] },
        groundingMetadata: { webSearchQueries: queries, searchEntryPoint: {} },
      },
    ],
    usageMetadata,
    modelVersion: model,
  });
  const gemini = (body: string, contentType: string, method = 'streamGenerateContent'): Answer => ({
    endpoint: `/v1beta/models/gemini-flash-latest:${method}`,
    contentType,
    body,
  });
  const sse = (...events: unknown[]) => events.map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`).join('');
  const queries = ['a ] b', 'c "d"'];

  it.each([
    ['gemini-3-pro-preview', 2],
    ['gemini-2.5-flash', 1],
    ['gemini-10', 2],
  ])('of %s are %s', async (model, searches) => {
    const response = grounded(model, queries);
    const answers = [
      gemini(JSON.stringify(response), 'application/json', 'generateContent'),
      gemini(JSON.stringify([grounded(model, []), response], null, 1), 'application/json'),
      gemini(sse(grounded(model, []), response, grounded(model, [queries[0]!])), EVENT_STREAM),
      gemini(
        sse(...Array<unknown>(99).fill(grounded(model, [], PADDING)), response, grounded(model, [])),
        EVENT_STREAM,
      ),
    ];
    for (const answer of answers) expect(await extraOf(answer)).toEqual({ web_searches: searches });
  });

  it('are none without queries', async () => {
    const answer = gemini(sse(grounded('gemini-3-pro', [])), EVENT_STREAM);
    expect(await extraOf(answer)).toBeNull();
  });

  it('are not certain in a large response in one document, or in one event', async () => {
    const large = grounded('gemini-3-pro', queries, PADDING.repeat(60));
    const unknown = { uncounted_tools: 1 };
    const document = gemini(JSON.stringify(large), 'application/json', 'generateContent');
    const { length } = document.body;
    for (let at = length - 200; at < length - 50; at++)
      expect(await extraOf(document, 1_000, 100_000, at)).toEqual(unknown);
    expect(await extraOf(gemini(sse(large), EVENT_STREAM))).toEqual(unknown);
    const without = { ...large, candidates: [{ content: { parts: [{ text: PADDING.repeat(60) }] } }] };
    expect(await extraOf(gemini(JSON.stringify(without), 'application/json', 'generateContent'))).toBeNull();
  });

  it('are counted wherever the stream is cut', () => {
    const bytes = Buffer.from(sse(grounded('x', []), grounded('x', queries)));
    for (let at = 0; at <= bytes.length; at++) {
      const chunks = [bytes.subarray(0, at), bytes.subarray(at)];
      expect(counted('/v1/models/gemini-3:streamGenerateContent', EVENT_STREAM, chunks)).toEqual({
        web_searches: 2,
      });
    }
  });
});

describe('units in the usage of a response', () => {
  it.each<[string, string, object, ExtraUsage | null]>([
    ['/v1/audio/transcriptions', 'seconds', { type: 'duration', seconds: 9 }, { input_audio_seconds: 9 }],
    [
      '/v1/audio/transcriptions',
      'parts of a second',
      { type: 'duration', seconds: 9.5 },
      { input_audio_seconds: 10 },
    ],
    ['/v1/audio/transcriptions', 'no number', { type: 'duration', seconds: '9' }, null],
    [
      '/v1/audio/transcriptions',
      'seconds beside tokens',
      { prompt_audio_seconds: 203, prompt_tokens: 4, completion_tokens: 635, total_tokens: 3264 },
      { input_audio_seconds: 203 },
    ],
  ])('%s: %s', async (endpoint, _, usage, extra) => {
    expect(await extraOf({ endpoint, body: JSON.stringify({ text: 'a', usage }) })).toEqual(extra);
  });

  it('has pages of documents, also of large ones', async () => {
    const pages = (usage_info: object, markdown = 'a') => ({
      endpoint: '/v1/ocr',
      body: JSON.stringify({ pages: [{ index: 0, markdown }], model: 'mistral-ocr-2512', usage_info }),
    });
    expect(await read(pages({ pages_processed: 29, doc_size_bytes: null }))).toMatchObject({
      model: 'mistral-ocr-2512',
      promptTokens: null,
      extra: { pages: 29 },
    });
    const annotated = { pages_processed: 0, pages_processed_annotation: 3, doc_size_bytes: 5 };
    expect(await extraOf(pages(annotated, PADDING.repeat(60)))).toEqual({ annotated_pages: 3 });
  });
});
