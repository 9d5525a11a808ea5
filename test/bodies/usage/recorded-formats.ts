import { crc32 } from 'node:zlib';
import { dataStream, namedStream, type RecordedAnswer, usage } from './recorded-responses.js';

const JSON_TYPE = 'application/json';
const SSE = 'text/event-stream';
const BEDROCK_STREAM = 'application/vnd.amazon.eventstream';

const json = (body: object) => JSON.stringify(body);
const lines = (...documents: object[]) => documents.map((document) => `${json(document)}\n`).join('');
const event = (type: string, rest: object = {}) => ({ type, ...rest });

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A message of Amazon's event stream (AWS documentation, "Event stream encoding"). */
export function awsMessage(type: string, payload: object, kind: 'event' | 'exception' = 'event'): Buffer {
  const header = (name: string, value: string) =>
    Buffer.concat([
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([7, 0, value.length]),
      Buffer.from(value),
    ]);
  const headers = Buffer.concat([
    header(`:${kind}-type`, type),
    header(':content-type', JSON_TYPE),
    header(':message-type', kind),
  ]);
  const body = Buffer.from(json(payload));
  const lengths = Buffer.concat([u32(16 + headers.length + body.length), u32(headers.length)]);
  const message = Buffer.concat([lengths, u32(crc32(lengths)), headers, body]);
  return Buffer.concat([message, u32(crc32(message))]);
}

/** A chunk of InvokeModelWithResponseStream: the model's own event. */
export const awsChunk = (payload: object): Buffer =>
  awsMessage('chunk', { bytes: Buffer.from(json(payload)).toString('base64'), p: 'abcdefgh' });

const CLAUDE_START = {
  type: 'message_start',
  message: {
    model: 'claude-sonnet-4-5-20250929',
    usage: {
      input_tokens: 3,
      cache_creation_input_tokens: 500,
      cache_read_input_tokens: 1_000,
      cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 400 },
      output_tokens: 1,
      service_tier: 'standard',
    },
  },
};

const [OPENAI, RESPONSES, ANTHROPIC] = ['/v1/chat/completions', '/v1/responses', '/v1/messages'];
const GEMINI = '/v1beta/models/gemini-embedding-001';
const BEDROCK = '/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0';

/** Two searches, and what costs nothing. */
const SEARCHED = [
  { type: 'reasoning', summary: [] },
  { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'x' } },
  { type: 'web_search_call', status: 'completed', action: { type: 'open_page', url: 'https://x.test' } },
  { type: 'web_search_call', status: 'failed', action: { type: 'search', query: 'x' } },
  { type: 'web_search_call', status: 'completed' },
  { type: 'message', content: [{ type: 'output_text', text: '{"type":"web_search_call"}' }] },
];

/** One response for each format that the reader knows besides those in recorded-responses.ts, and some that it does not. */
export const FORMATS: readonly RecordedAnswer[] = [
  {
    name: 'OpenAI chat completion with audio in and out, in the flex tier',
    endpoint: OPENAI,
    contentType: JSON_TYPE,
    body: json({
      model: 'gpt-audio',
      usage: {
        prompt_tokens: 120,
        completion_tokens: 80,
        total_tokens: 200,
        prompt_tokens_details: { cached_tokens: 64, audio_tokens: 40 },
        completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 70 },
      },
      service_tier: 'flex',
    }),
    usage: usage('gpt-audio', 120, 80, 64, 0, {
      extra: { input_audio_tokens: 40, output_audio_tokens: 70, service_tier: 'flex' },
    }),
  },
  {
    name: 'OpenAI response in the background: the usage comes with a later GET',
    endpoint: RESPONSES,
    contentType: JSON_TYPE,
    body: json({ id: 'resp_1', status: 'queued', background: true, model: 'gpt-5', usage: null }),
    usage: usage('gpt-5'),
  },
  {
    name: 'OpenAI response in the priority tier, streamed',
    endpoint: RESPONSES,
    contentType: SSE,
    body: namedStream(
      event('response.created', { response: { model: 'gpt-5', usage: null, service_tier: 'auto' } }),
      event('response.completed', {
        response: {
          model: 'gpt-5',
          service_tier: 'priority',
          usage: {
            input_tokens: 2_000,
            input_tokens_details: { cached_tokens: 1_024, cache_write_tokens: 512 },
            output_tokens: 90,
            output_tokens_details: { reasoning_tokens: 64 },
            total_tokens: 2_090,
          },
        },
      }),
    ),
    usage: usage('gpt-5', 2_000, 90, 1_024, 64, {
      cacheWriteTokens: 512,
      extra: { service_tier: 'priority' },
    }),
  },
  {
    name: 'Anthropic message with an hour of cache, web searches and the batch tier',
    endpoint: ANTHROPIC,
    contentType: JSON_TYPE,
    body: json({
      model: 'claude-sonnet-4-5-20250929',
      usage: {
        input_tokens: 10,
        cache_creation_input_tokens: 300,
        cache_read_input_tokens: 2_000,
        cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
        output_tokens: 50,
        server_tool_use: { web_search_requests: 3, web_fetch_requests: 0 },
        service_tier: 'batch',
      },
    }),
    usage: usage('claude-sonnet-4-5-20250929', 2_310, 50, 2_000, null, {
      cacheWriteTokens: 300,
      extra: { cache_write_1h_tokens: 200, web_searches: 3, service_tier: 'batch' },
    }),
  },
  {
    name: 'Anthropic stream whose first event has the details of the cache',
    endpoint: ANTHROPIC,
    contentType: SSE,
    body: namedStream(
      CLAUDE_START,
      event('content_block_delta', { delta: { type: 'text_delta', text: 'Hi' } }),
      event('message_delta', {
        usage: { output_tokens: 9, input_tokens: 3, cache_read_input_tokens: null },
      }),
      event('message_stop'),
    ),
    usage: usage('claude-sonnet-4-5-20250929', 1_503, 9, 1_000, null, {
      cacheWriteTokens: 500,
      extra: { cache_write_1h_tokens: 400 },
    }),
  },
  {
    name: 'Groq stream with the usage in x_groq only',
    endpoint: '/openai/v1/chat/completions',
    contentType: SSE,
    body: dataStream(
      { model: 'llama-3.1-8b-instant', choices: [{ delta: { content: '' } }], x_groq: { id: 'req_1' } },
      { model: 'llama-3.1-8b-instant', choices: [{ delta: { content: 'Hi' } }] },
      {
        model: 'llama-3.1-8b-instant',
        choices: [{ delta: {}, finish_reason: 'stop' }],
        x_groq: {
          id: 'req_1',
          usage: { queue_time: 0.03, prompt_tokens: 42, completion_tokens: 20, total_tokens: 62 },
        },
      },
    ),
    usage: usage('llama-3.1-8b-instant', 42, 20),
  },
  {
    name: 'Groq completion',
    endpoint: '/openai/v1/chat/completions',
    contentType: JSON_TYPE,
    body: json({
      model: 'openai/gpt-oss-20b',
      usage: {
        queue_time: 0.03,
        prompt_tokens: 78,
        prompt_time: 0.004,
        completion_tokens: 40,
        total_tokens: 118,
        completion_tokens_details: { reasoning_tokens: 21 },
        prompt_tokens_details: { cached_tokens: 64 },
      },
      x_groq: { id: 'req_1' },
      service_tier: 'on_demand',
    }),
    usage: usage('openai/gpt-oss-20b', 78, 40, 64, 21),
  },
  {
    name: 'DeepSeek completion',
    endpoint: OPENAI,
    contentType: JSON_TYPE,
    body: json({
      model: 'deepseek-reasoner',
      usage: {
        prompt_tokens: 100,
        completion_tokens: 60,
        total_tokens: 160,
        prompt_cache_hit_tokens: 64,
        prompt_cache_miss_tokens: 36,
        completion_tokens_details: { reasoning_tokens: 50 },
      },
    }),
    usage: usage('deepseek-reasoner', 100, 60, 64, 50),
  },
  {
    name: 'xAI completion, whose completion tokens leave out reasoning, with its cost',
    endpoint: OPENAI,
    contentType: JSON_TYPE,
    body: json({
      model: 'grok-4.5',
      usage: {
        prompt_tokens: 32,
        completion_tokens: 9,
        total_tokens: 135,
        prompt_tokens_details: { text_tokens: 32, audio_tokens: 0, image_tokens: 0, cached_tokens: 6 },
        completion_tokens_details: { reasoning_tokens: 94, audio_tokens: 0 },
        num_sources_used: 0,
        cost_in_usd_ticks: 37756000,
      },
    }),
    usage: usage('grok-4.5', 32, 103, 6, 94, { reportedCost: '0.0037756' }),
  },
  {
    name: 'xAI response, whose output tokens include reasoning',
    endpoint: RESPONSES,
    contentType: JSON_TYPE,
    body: json({
      model: 'grok-4.5',
      usage: {
        input_tokens: 32,
        input_tokens_details: { cached_tokens: 6 },
        output_tokens: 103,
        output_tokens_details: { reasoning_tokens: 94 },
        total_tokens: 135,
        cost_in_usd_ticks: 12,
      },
    }),
    usage: usage('grok-4.5', 32, 103, 6, 94, { reportedCost: '0.0000000012' }),
  },
  {
    name: 'OpenRouter completion with its cost and a cache write',
    endpoint: OPENAI,
    contentType: JSON_TYPE,
    body: '{"model":"anthropic/claude-sonnet-4.5","usage":{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":1.4100E-05,"is_byok":false,"cost_details":{"upstream_inference_cost":null},"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":100,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0},"server_tool_use":{"web_search_requests":1}}}',
    usage: usage('anthropic/claude-sonnet-4.5', 194, 2, 0, 0, {
      cacheWriteTokens: 100,
      reportedCost: '0.0000141',
      extra: { web_searches: 1 },
    }),
  },
  {
    name: 'OpenRouter stream with the customer’s own key: its fee and the provider’s price',
    endpoint: OPENAI,
    contentType: SSE,
    body: `: OPENROUTER PROCESSING\n\n${dataStream(
      { model: 'openai/gpt-4o', choices: [{ delta: { content: 'Hi' } }] },
      {
        model: 'openai/gpt-4o',
        choices: [],
        usage: {
          prompt_tokens: 194,
          completion_tokens: 2,
          total_tokens: 196,
          cost: 0.95,
          is_byok: true,
          cost_details: { upstream_inference_cost: 19 },
        },
      },
    )}`,
    usage: usage('openai/gpt-4o', 194, 2, null, null, { reportedCost: '19.95' }),
  },
  {
    name: 'Perplexity completion',
    endpoint: '/chat/completions',
    contentType: JSON_TYPE,
    body: json({
      model: 'sonar-pro',
      usage: {
        prompt_tokens: 8,
        completion_tokens: 439,
        total_tokens: 447,
        search_context_size: 'low',
        num_search_queries: 2,
        cost: {
          input_tokens_cost: 0.000024,
          output_tokens_cost: 0.006585,
          request_cost: 0.006,
          total_cost: 0.012609,
        },
      },
    }),
    usage: usage('sonar-pro', 8, 439, null, null, {
      reportedCost: '0.012609',
      extra: { web_searches: 2 },
    }),
  },
  {
    name: 'Mistral completion',
    endpoint: OPENAI,
    contentType: JSON_TYPE,
    body: json({
      model: 'mistral-small-latest',
      usage: { prompt_tokens: 16, completion_tokens: 34, total_tokens: 50, num_cached_tokens: 8 },
    }),
    usage: usage('mistral-small-latest', 16, 34, 8),
  },
  {
    name: 'Moonshot completion',
    endpoint: OPENAI,
    contentType: JSON_TYPE,
    body: json({
      model: 'kimi-k2',
      usage: { prompt_tokens: 30, completion_tokens: 11, total_tokens: 41, cached_tokens: 20 },
    }),
    usage: usage('kimi-k2', 30, 11, 20),
  },
  {
    name: 'Writer completion',
    endpoint: '/v1/chat',
    contentType: JSON_TYPE,
    body: json({
      id: 'w1',
      object: 'chat.completion',
      model: 'palmyra-x5',
      usage: { prompt_tokens: 40, completion_tokens: 18, total_tokens: 58, prompt_token_details: null },
    }),
    usage: usage('palmyra-x5', 40, 18),
  },
  {
    name: 'Together rerank',
    endpoint: '/v1/rerank',
    contentType: JSON_TYPE,
    body: json({
      object: 'rerank',
      model: 'm',
      results: [],
      usage: { prompt_tokens: 1_837, completion_tokens: 0, total_tokens: 1_837 },
    }),
    usage: usage('m', 1_837, 0),
  },
  {
    name: 'Gemini completion over the OpenAI-compatible API, whose total alone includes thinking',
    endpoint: '/v1beta/openai/chat/completions',
    contentType: JSON_TYPE,
    body: json({
      model: 'gemini-2.5-flash',
      usage: { completion_tokens: 198, prompt_tokens: 20, total_tokens: 623 },
    }),
    usage: usage('gemini-2.5-flash', 20, 603, null, 405),
  },
  {
    name: 'Gemini embedding',
    endpoint: `${GEMINI}:embedContent`,
    contentType: 'application/json; charset=UTF-8',
    body: json({ embedding: { values: [0.01, -0.02] }, usageMetadata: { promptTokenCount: 6 } }),
    usage: usage(null, 6),
  },
  {
    name: 'Gemini batch of embeddings',
    endpoint: `${GEMINI}:batchEmbedContents`,
    contentType: 'application/json; charset=UTF-8',
    body: json({
      embeddings: [{ values: [0.01] }, { values: [0.02] }],
      usageMetadata: { promptTokenCount: 13, promptTokenDetails: [{ modality: 'TEXT', tokenCount: 13 }] },
    }),
    usage: usage(null, 13),
  },
  {
    name: 'Gemini answer with audio, tools and thoughts, in the flex tier',
    endpoint: '/v1beta/models/gemini-2.5-pro:generateContent',
    contentType: JSON_TYPE,
    body: json({
      modelVersion: 'gemini-2.5-pro',
      usageMetadata: {
        promptTokenCount: 100,
        toolUsePromptTokenCount: 30,
        cachedContentTokenCount: 40,
        candidatesTokenCount: 20,
        thoughtsTokenCount: 15,
        totalTokenCount: 165,
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 25 },
          { modality: 'AUDIO', tokenCount: 75 },
        ],
        cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 40 }],
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 12 }],
        serviceTier: 'flex',
      },
    }),
    usage: usage('gemini-2.5-pro', 130, 35, 40, 15, {
      extra: {
        input_audio_tokens: 75,
        cached_audio_tokens: 40,
        output_image_tokens: 12,
        service_tier: 'flex',
      },
    }),
  },
  {
    name: 'Vertex AI answer whose candidates include the thoughts, on provisioned throughput',
    endpoint: '/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:generateContent',
    contentType: JSON_TYPE,
    body: json({
      modelVersion: 'gemini-2.5-pro',
      usageMetadata: {
        promptTokenCount: 100,
        candidatesTokenCount: 35,
        thoughtsTokenCount: 15,
        totalTokenCount: 135,
        trafficType: 'PROVISIONED_THROUGHPUT',
      },
    }),
    usage: usage('gemini-2.5-pro', 100, 35, null, 15, {
      extra: { service_tier: 'provisioned_throughput' },
    }),
  },
  {
    name: 'Vertex AI prediction, which reports characters and no tokens',
    endpoint: '/v1/projects/p/locations/l/publishers/google/models/text-embedding-005:predict',
    contentType: JSON_TYPE,
    body: json({
      predictions: [{ embeddings: { statistics: { token_count: 4 } } }],
      metadata: { billableCharacterCount: 17 },
    }),
    usage: usage(null),
  },
  {
    name: 'Gemini interaction',
    endpoint: '/v1beta/interactions',
    contentType: JSON_TYPE,
    body: json({
      id: 'v1_1',
      status: 'completed',
      model: 'gemini-3.5-flash',
      usage: {
        total_input_tokens: 9,
        total_cached_tokens: 4,
        total_tool_use_tokens: 5,
        total_output_tokens: 779,
        total_thought_tokens: 912,
        total_tokens: 1_705,
        input_tokens_by_modality: [{ modality: 'text', tokens: 9 }],
      },
    }),
    usage: usage('gemini-3.5-flash', 14, 1_691, 4, 912),
  },
  {
    name: 'Gemini interaction, streamed',
    endpoint: '/v1beta/interactions',
    contentType: SSE,
    body: namedStream(
      ...[
        { event_type: 'interaction.created', interaction: { id: 'v1_1', model: 'gemini-3.5-flash' } },
        { event_type: 'step.delta', delta: { type: 'text', text: 'Hi' } },
        {
          event_type: 'interaction.completed',
          interaction: {
            id: 'v1_1',
            usage: {
              total_input_tokens: 9,
              total_output_tokens: 20,
              total_thought_tokens: 30,
              total_tokens: 59,
            },
          },
        },
      ].map((data) => ({ type: data.event_type, ...data })),
    ),
    usage: usage('gemini-3.5-flash', 9, 50, null, 30),
  },
  {
    name: 'Bedrock Converse with the cache',
    endpoint: `${BEDROCK}/converse`,
    contentType: JSON_TYPE,
    body: json({
      metrics: { latencyMs: 800 },
      output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } },
      stopReason: 'end_turn',
      usage: {
        inputTokens: 12,
        outputTokens: 30,
        totalTokens: 1_542,
        cacheReadInputTokens: 1_000,
        cacheWriteInputTokens: 500,
        cacheDetails: [
          { ttl: '1h', inputTokens: 400 },
          { ttl: '5m', inputTokens: 100 },
        ],
      },
      serviceTier: { type: 'priority' },
    }),
    usage: usage(null, 1_512, 30, 1_000, null, {
      cacheWriteTokens: 500,
      extra: { cache_write_1h_tokens: 400, service_tier: 'priority' },
    }),
  },
  {
    name: 'Bedrock Converse of a model whose input includes the cache',
    endpoint: '/model/openai.gpt-5.6/converse',
    contentType: JSON_TYPE,
    body: json({
      usage: { inputTokens: 1_012, outputTokens: 30, totalTokens: 1_042, cacheReadInputTokens: 1_000 },
    }),
    usage: usage(null, 1_012, 30, 1_000),
  },
  {
    name: 'Bedrock ConverseStream',
    endpoint: `${BEDROCK}/converse-stream`,
    contentType: BEDROCK_STREAM,
    body: Buffer.concat([
      awsMessage('messageStart', { p: 'abc', role: 'assistant' }),
      awsMessage('contentBlockDelta', { contentBlockIndex: 0, delta: { text: '"usage":{"inputTokens":1}' } }),
      awsMessage('contentBlockStop', { contentBlockIndex: 0 }),
      awsMessage('messageStop', { stopReason: 'end_turn' }),
      awsMessage('metadata', {
        metrics: { latencyMs: 700 },
        usage: { inputTokens: 16, outputTokens: 35, totalTokens: 51 },
      }),
    ]),
    usage: usage(null, 16, 35),
  },
  {
    name: 'Bedrock InvokeModel of Claude',
    endpoint: `${BEDROCK}/invoke`,
    contentType: JSON_TYPE,
    headers: [
      'x-amzn-bedrock-input-token-count',
      '3',
      'x-amzn-bedrock-output-token-count',
      '9',
      'x-amzn-bedrock-cache-read-input-token-count',
      '1000',
    ],
    body: json({
      model: 'claude-sonnet-4-5-20250929',
      type: 'message',
      usage: {
        input_tokens: 3,
        cache_creation_input_tokens: 500,
        cache_read_input_tokens: 1_000,
        output_tokens: 9,
      },
    }),
    usage: usage('claude-sonnet-4-5-20250929', 1_503, 9, 1_000, null, { cacheWriteTokens: 500 }),
  },
  {
    name: 'Bedrock InvokeModel of Nova',
    endpoint: '/model/amazon.nova-lite-v1%3A0/invoke',
    contentType: JSON_TYPE,
    body: json({
      output: { message: { content: [{ text: 'Hi' }], role: 'assistant' } },
      stopReason: 'end_turn',
      usage: {
        inputTokens: 5,
        outputTokens: 9,
        totalTokens: 64,
        cacheReadInputTokenCount: 50,
        cacheWriteInputTokenCount: 0,
      },
    }),
    usage: usage(null, 55, 9, 50, null, { cacheWriteTokens: 0 }),
  },
  ...[
    ['Titan', { inputTextTokenCount: 5, results: [{ tokenCount: 9, outputText: 'Hi' }] }],
    ['Llama', { generation: 'Hi', prompt_token_count: 5, generation_token_count: 9 }],
    ['a Cohere model', { generations: [{ text: 'Hi' }] }],
  ].map(([family, body]) => ({
    name: `Bedrock InvokeModel of ${family as string}, by its headers`,
    endpoint: '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fm/invoke',
    contentType: JSON_TYPE,
    headers: ['X-Amzn-Bedrock-Input-Token-Count', '5', 'X-Amzn-Bedrock-Output-Token-Count', '9'],
    body: json(body as object),
    usage: usage(null, 5, 9),
  })),
  {
    name: 'Bedrock InvokeModel stream of Claude',
    endpoint: `${BEDROCK}/invoke-with-response-stream`,
    contentType: BEDROCK_STREAM,
    body: Buffer.concat([
      awsChunk(CLAUDE_START),
      awsChunk(event('content_block_delta', { delta: { text: 'Hi' } })),
      awsChunk(event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 9 } })),
      awsChunk(
        event('message_stop', {
          'amazon-bedrock-invocationMetrics': {
            inputTokenCount: 3,
            outputTokenCount: 9,
            invocationLatency: 700,
            firstByteLatency: 300,
          },
        }),
      ),
    ]),
    usage: usage('claude-sonnet-4-5-20250929', 1_503, 9, 1_000, null, {
      cacheWriteTokens: 500,
      extra: { cache_write_1h_tokens: 400 },
    }),
  },
  {
    name: 'Bedrock InvokeModel stream of Llama',
    endpoint: '/model/meta.llama3-1-8b-instruct-v1%3A0/invoke-with-response-stream',
    contentType: BEDROCK_STREAM,
    body: Buffer.concat([
      awsChunk({ generation: 'H', prompt_token_count: 5, generation_token_count: 1, stop_reason: null }),
      awsChunk({
        generation: '',
        generation_token_count: 2,
        stop_reason: 'stop',
        'amazon-bedrock-invocationMetrics': { inputTokenCount: 5, outputTokenCount: 2 },
      }),
    ]),
    usage: usage(null, 5, 2),
  },
  {
    name: 'Bedrock InvokeModel stream of Titan that a guardrail stopped',
    endpoint: '/model/amazon.titan-text-express-v1/invoke-with-response-stream',
    contentType: BEDROCK_STREAM,
    body: Buffer.concat([
      awsChunk({ outputText: 'H', index: 0, totalOutputTextTokenCount: null, inputTextTokenCount: null }),
      awsChunk({ outputText: '', index: 0, totalOutputTextTokenCount: 3, inputTextTokenCount: 6 }),
    ]),
    usage: usage(null, 6, 3),
  },
  {
    name: 'OpenRouter chat of Gemini, whose cached tokens are also written',
    endpoint: '/api/v1/chat/completions',
    contentType: JSON_TYPE,
    body: json({
      model: 'google/gemini-2.5-flash',
      usage: {
        prompt_tokens: 2_168,
        completion_tokens: 100,
        total_tokens: 2_268,
        prompt_tokens_details: { cached_tokens: 2_161, cache_write_tokens: 2_161 },
      },
    }),
    usage: usage('google/gemini-2.5-flash', 2_168, 100, 2_161, null, { cacheWriteTokens: 2_161 }),
  },
  {
    name: 'OpenRouter chat with more reasoning than output',
    endpoint: '/api/v1/chat/completions',
    contentType: JSON_TYPE,
    body: json({
      model: 'm',
      usage: {
        prompt_tokens: 43,
        completion_tokens: 10,
        total_tokens: 53,
        completion_tokens_details: { reasoning_tokens: 11 },
      },
    }),
    usage: usage('m', 43, 10, null, 11),
  },
  {
    name: 'OpenAI responses, with items of web searches',
    endpoint: RESPONSES,
    contentType: JSON_TYPE,
    body: json({ model: 'gpt-4.1', output: SEARCHED, usage: { input_tokens: 9, output_tokens: 4 } }),
    usage: usage('gpt-4.1', 9, 4, null, null, { extra: { web_searches: 2 } }),
  },
  {
    name: 'OpenAI responses, streamed, with items of web searches',
    endpoint: RESPONSES,
    contentType: SSE,
    body: namedStream(
      event('response.created', { response: { model: 'gpt-4.1', output: [], usage: null } }),
      event('response.completed', {
        response: { model: 'gpt-4.1', output: SEARCHED, usage: { input_tokens: 9, output_tokens: 4 } },
      }),
    ),
    usage: usage('gpt-4.1', 9, 4, null, null, { extra: { web_searches: 2 } }),
  },
  {
    name: 'OpenAI responses, streamed, that count web searches',
    endpoint: RESPONSES,
    contentType: SSE,
    body: namedStream(
      event('response.created', { response: { model: 'gpt-4.1', output: [], usage: null } }),
      event('response.completed', {
        response: {
          model: 'gpt-4.1',
          output: SEARCHED,
          tool_usage: { image_gen: { input_tokens: 0 }, web_search: { num_requests: 3 } },
          usage: { input_tokens: 9, output_tokens: 4 },
        },
      }),
    ),
    usage: usage('gpt-4.1', 9, 4, null, null, { extra: { web_searches: 3 } }),
  },
  {
    name: 'Anthropic messages in fast mode',
    endpoint: ANTHROPIC,
    contentType: JSON_TYPE,
    body: json({
      model: 'claude-opus-5',
      usage: { input_tokens: 9, output_tokens: 4, service_tier: 'standard', speed: 'fast' },
    }),
    usage: usage('claude-opus-5', 9, 4, null, null, { extra: { service_tier: 'fast' } }),
  },
  {
    name: 'Cohere v2 chat with cached tokens',
    endpoint: '/v2/chat',
    contentType: JSON_TYPE,
    body: json({
      usage: {
        billed_units: { input_tokens: 12, output_tokens: 4 },
        tokens: { input_tokens: 212, output_tokens: 4 },
        cached_tokens: 208,
      },
    }),
    usage: usage(null, 12, 4),
  },
  {
    name: 'Cohere v2 chat with cached tokens and without billed ones',
    endpoint: '/v2/chat',
    contentType: JSON_TYPE,
    body: json({ usage: { tokens: { input_tokens: 212, output_tokens: 4 }, cached_tokens: 208 } }),
    usage: usage(null, 212, 4, 208),
  },
  {
    name: 'Cohere v2 chat',
    endpoint: '/v2/chat',
    contentType: JSON_TYPE,
    body: json({
      id: 'c1',
      message: { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] },
      finish_reason: 'COMPLETE',
      usage: {
        billed_units: { input_tokens: 5, output_tokens: 418 },
        tokens: { input_tokens: 71, output_tokens: 420 },
        cached_tokens: 0,
      },
    }),
    usage: usage(null, 5, 418),
  },
  {
    name: 'Cohere v2 chat, streamed',
    endpoint: '/v2/chat',
    contentType: SSE,
    body: namedStream(
      event('message-start', { id: 'c1', delta: { message: { role: 'assistant', content: [] } } }),
      event('content-delta', { index: 0, delta: { message: { content: { text: 'Hi' } } } }),
      event('message-end', {
        delta: {
          finish_reason: 'COMPLETE',
          usage: {
            billed_units: { input_tokens: 17, output_tokens: 12 },
            tokens: { input_tokens: 215, output_tokens: 12 },
          },
        },
      }),
    ),
    usage: usage(null, 17, 12),
  },
  {
    name: 'Cohere v1 chat',
    endpoint: '/v1/chat',
    contentType: JSON_TYPE,
    body: json({
      text: 'Hi',
      generation_id: 'g',
      meta: {
        api_version: { version: '1' },
        billed_units: { input_tokens: 5, output_tokens: 4 },
        tokens: { input_tokens: 70, output_tokens: 4 },
      },
    }),
    usage: usage(null, 5, 4),
  },
  {
    name: 'Cohere v1 chat, streamed in lines',
    endpoint: '/v1/chat',
    contentType: 'application/stream+json',
    body: lines(
      { is_finished: false, event_type: 'stream-start', generation_id: 'g' },
      { is_finished: false, event_type: 'text-generation', text: 'Hi' },
      {
        is_finished: true,
        event_type: 'stream-end',
        response: { text: 'Hi', meta: { tokens: { input_tokens: 70, output_tokens: 4 } } },
        finish_reason: 'COMPLETE',
      },
    ),
    usage: usage(null, 70, 4),
  },
  {
    name: 'Cohere embeddings',
    endpoint: '/v2/embed',
    contentType: JSON_TYPE,
    body: json({
      id: 'e',
      embeddings: { float: [[0.1, 0.2]] },
      texts: ['hello'],
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 2 } },
    }),
    usage: usage(null, 2),
  },
  {
    name: 'Cohere rerank, billed in searches',
    endpoint: '/v2/rerank',
    contentType: JSON_TYPE,
    body: json({ results: [], meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } } }),
    usage: usage(null, null, null, null, null, { extra: { search_units: 1 } }),
  },
  {
    name: 'Voyage embeddings',
    endpoint: '/v1/embeddings',
    contentType: JSON_TYPE,
    body: json({ object: 'list', data: [], model: 'voyage-3.5', usage: { total_tokens: 10 } }),
    usage: usage('voyage-3.5', 10),
  },
  {
    name: 'Voyage multimodal embeddings',
    endpoint: '/v1/multimodalembeddings',
    contentType: JSON_TYPE,
    body: json({
      model: 'voyage-multimodal-3',
      usage: { text_tokens: 5, image_pixels: 2_000_000, total_tokens: 3_576 },
    }),
    usage: usage('voyage-multimodal-3', 3_576),
  },
  {
    name: 'Jina rerank',
    endpoint: '/v1/rerank',
    contentType: JSON_TYPE,
    body: json({ model: 'jina-reranker-v2', usage: { total_tokens: 815 }, results: [] }),
    usage: usage('jina-reranker-v2', 815),
  },
  {
    name: 'a completion with a total only, of which no part is known',
    endpoint: OPENAI,
    contentType: JSON_TYPE,
    body: json({ model: 'm', usage: { total_tokens: 815 } }),
    usage: usage('m'),
  },
  {
    name: 'Ollama chat, streamed',
    endpoint: '/api/chat',
    contentType: 'application/x-ndjson',
    body: lines(
      { model: 'llama3.2', message: { role: 'assistant', content: 'Hi "eval_count": 1' }, done: false },
      { model: 'llama3.2', message: { role: 'assistant', content: '!' }, done: false },
      {
        model: 'llama3.2',
        message: { role: 'assistant', content: '' },
        done: true,
        done_reason: 'stop',
        total_duration: 4_883_583_458,
        prompt_eval_count: 26,
        eval_count: 282,
        eval_duration: 4_535_599_000,
      },
    ),
    usage: usage('llama3.2', 26, 282),
  },
  {
    name: 'Ollama completion',
    endpoint: '/api/generate',
    contentType: 'application/json; charset=utf-8',
    body: json({
      model: 'llama3.2',
      response: 'Hi',
      done: true,
      context: [1, 2, 3],
      prompt_eval_count: 26,
      eval_count: 290,
      total_duration: 5_043_500_667,
    }),
    usage: usage('llama3.2', 26, 290),
  },
  {
    name: 'Ollama embeddings',
    endpoint: '/api/embed',
    contentType: 'application/json; charset=utf-8',
    body: json({
      model: 'all-minilm',
      embeddings: [[0.01, -0.001]],
      load_duration: 1_019_500,
      prompt_eval_count: 8,
    }),
    usage: usage('all-minilm', 8),
  },
];
