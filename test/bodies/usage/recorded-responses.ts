import { NO_USAGE, type ResponseUsage } from '../../../src/bodies/usage/token-usage.js';

/** A response in the form its provider's API reference shows, and what a reader must take from it. */
export interface RecordedAnswer {
  name: string;
  endpoint: string;
  contentType: string;
  /** Flat raw headers that matter to the reader, besides the content type. */
  headers?: string[];
  body: string | Buffer;
  usage: ResponseUsage;
}

const JSON_TYPE = 'application/json';
const SSE = 'text/event-stream; charset=utf-8';

/** Model, then all input, all output, cached and reasoning tokens; then the rest. */
export function usage(
  model: string | null,
  promptTokens: number | null = null,
  completionTokens: number | null = null,
  cachedTokens: number | null = null,
  reasoningTokens: number | null = null,
  rest: Partial<ResponseUsage> = {},
): ResponseUsage {
  return { ...NO_USAGE, model, promptTokens, completionTokens, cachedTokens, reasoningTokens, ...rest };
}

/** OpenAI's way: data lines only, and `[DONE]`. */
export const dataStream = (...events: object[]): string =>
  [...events.map((event) => JSON.stringify(event)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');

/** Anthropic's and the responses API's way: each event named by its type. */
export const namedStream = (...events: { type: string }[]): string =>
  events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

const chunk = (rest: object) => ({
  id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG',
  object: 'chat.completion.chunk',
  created: 1741570283,
  model: 'gpt-4o-2024-08-06',
  system_fingerprint: 'fp_44709d6fcb',
  ...rest,
});
const delta = (text: string) => ({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] });

export const CHAT_USAGE = {
  prompt_tokens: 1117,
  completion_tokens: 46,
  total_tokens: 1163,
  prompt_tokens_details: { cached_tokens: 1024, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 12, audio_tokens: 0, accepted_prediction_tokens: 0 },
};

const RESPONSE = {
  id: 'resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b',
  object: 'response',
  created_at: 1741476542,
  status: 'completed',
  error: null,
  instructions: 'Answer with "usage":{"input_tokens":1} and nothing else.',
  model: 'gpt-4.1-2025-04-14',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: '"usage":{"input_tokens":1}', annotations: [] }],
    },
  ],
  usage: {
    input_tokens: 36,
    input_tokens_details: { cached_tokens: 30 },
    output_tokens: 87,
    output_tokens_details: { reasoning_tokens: 64 },
    total_tokens: 123,
  },
  user: null,
  metadata: {},
};

const MESSAGE = {
  id: 'msg_013Zva2CMHLNnXjNJJKqJ2EF',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: "Hi! My name is Claude. It's a model." }],
  stop_reason: 'end_turn',
  stop_sequence: null,
};

export const messageStream = (...deltas: object[]): string =>
  namedStream(
    {
      type: 'message_start',
      message: {
        ...MESSAGE,
        content: [],
        stop_reason: null,
        usage: {
          input_tokens: 25,
          cache_creation_input_tokens: 100,
          cache_read_input_tokens: 2048,
          output_tokens: 1,
        },
      },
    } as { type: string },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } } as { type: string },
    { type: 'ping' },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hallo, Welt 🙂 é' } } as {
      type: string;
    },
    { type: 'content_block_stop', index: 0 } as { type: string },
    ...deltas.map((figures, i) => ({
      type: 'message_delta',
      delta: { stop_reason: i === deltas.length - 1 ? 'end_turn' : null, stop_sequence: null },
      usage: figures,
    })),
    { type: 'message_stop' },
  );

const candidate = (text: string, figures: object, finish: object = {}) => ({
  candidates: [{ content: { parts: [{ text }], role: 'model' }, ...finish, index: 0 }],
  usageMetadata: figures,
  modelVersion: 'gemini-2.5-flash',
  responseId: 'x3aYaJ',
});
export const GEMINI = [
  candidate('One,', { promptTokenCount: 8, totalTokenCount: 40, thoughtsTokenCount: 32 }),
  candidate(
    ' two.',
    {
      promptTokenCount: 8,
      candidatesTokenCount: 12,
      totalTokenCount: 52,
      cachedContentTokenCount: 4,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 8 }],
      thoughtsTokenCount: 32,
    },
    { finishReason: 'STOP' },
  ),
] as const;

export const ANSWERS: readonly RecordedAnswer[] = [
  {
    name: 'OpenAI chat completion',
    endpoint: '/v1/chat/completions',
    contentType: JSON_TYPE,
    body: JSON.stringify(
      {
        id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
        object: 'chat.completion',
        created: 1741569952,
        model: 'gpt-4o-2024-08-06',
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hello! {"usage":{}}' } }],
        usage: CHAT_USAGE,
        service_tier: 'default',
      },
      null,
      2,
    ),
    usage: usage('gpt-4o-2024-08-06', 1117, 46, 1024, 12),
  },
  {
    name: 'OpenAI chat completion, streamed with include_usage',
    endpoint: '/v1/chat/completions',
    contentType: SSE,
    body: dataStream(
      chunk({ ...delta('Hello 🙂'), usage: null }),
      chunk({ ...delta(' "usage":{"prompt_tokens":1}'), usage: null }),
      chunk({ choices: [], usage: CHAT_USAGE }),
    ),
    usage: usage('gpt-4o-2024-08-06', 1117, 46, 1024, 12),
  },
  {
    name: 'OpenAI chat completion, streamed without include_usage',
    endpoint: '/v1/chat/completions',
    contentType: SSE,
    body: dataStream(chunk(delta('Hello')), chunk(delta('!'))),
    usage: usage('gpt-4o-2024-08-06'),
  },
  {
    name: 'Azure OpenAI chat completion, streamed after an event on the prompt',
    endpoint: '/openai/deployments/mine/chat/completions',
    contentType: SSE,
    body: dataStream(
      {
        choices: [],
        created: 0,
        id: '',
        model: '',
        object: '',
        prompt_filter_results: [{ prompt_index: 0 }],
      },
      chunk(delta('Hello')),
      chunk({ choices: [], usage: { prompt_tokens: 18, completion_tokens: 9, total_tokens: 27 } }),
    ),
    usage: usage('gpt-4o-2024-08-06', 18, 9),
  },
  {
    name: 'Azure OpenAI chat completion, streamed without include_usage',
    endpoint: '/openai/deployments/mine/chat/completions',
    contentType: SSE,
    body: dataStream({ choices: [], model: '', prompt_filter_results: [] }, chunk(delta('Hello'))),
    usage: usage('gpt-4o-2024-08-06'),
  },
  {
    name: 'OpenAI completion of the older kind',
    endpoint: '/v1/completions',
    contentType: JSON_TYPE,
    body: '{"id":"cmpl-uqkvlQyYK7bGYrRHQ0eXlWi7","object":"text_completion","created":1589478378,"model":"gpt-3.5-turbo-instruct","choices":[{"text":"\\n\\nThis is indeed a test","index":0,"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}',
    usage: usage('gpt-3.5-turbo-instruct', 5, 7),
  },
  {
    name: 'OpenAI embeddings',
    endpoint: '/v1/embeddings',
    contentType: JSON_TYPE,
    body: '{"object":"list","data":[{"object":"embedding","embedding":[0.0023064255,-0.009327292,-1e-7],"index":0}],"model":"text-embedding-ada-002","usage":{"prompt_tokens":8,"total_tokens":8}}',
    usage: usage('text-embedding-ada-002', 8),
  },
  {
    name: 'OpenAI response',
    endpoint: '/v1/responses',
    contentType: JSON_TYPE,
    body: JSON.stringify(RESPONSE),
    usage: usage('gpt-4.1-2025-04-14', 36, 87, 30, 64),
  },
  ...['response.completed', 'response.incomplete', 'response.failed'].map((type) => ({
    name: `OpenAI response, streamed to ${type}`,
    endpoint: '/v1/responses',
    contentType: SSE,
    body: namedStream(
      { type: 'response.created', response: { ...RESPONSE, output: [], usage: null } } as { type: string },
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Hi' } as { type: string },
      { type, response: RESPONSE, sequence_number: 3 } as { type: string },
    ),
    usage: usage('gpt-4.1-2025-04-14', 36, 87, 30, 64),
  })),
  {
    name: 'OpenAI transcription billed by tokens',
    endpoint: '/v1/audio/transcriptions',
    contentType: JSON_TYPE,
    body: '{"text":"Imagine the wildest idea.","usage":{"type":"tokens","input_tokens":14,"input_token_details":{"text_tokens":10,"audio_tokens":4},"output_tokens":101,"total_tokens":115}}',
    usage: usage(null, 14, 101, null, null, { extra: { input_audio_tokens: 4 } }),
  },
  {
    name: 'OpenAI transcription billed by time',
    endpoint: '/v1/audio/transcriptions',
    contentType: JSON_TYPE,
    body: '{"text":"Imagine.","usage":{"type":"duration","seconds":9}}',
    usage: usage(null, null, null, null, null, { extra: { input_audio_seconds: 9 } }),
  },
  {
    name: 'OpenAI transcription, streamed',
    endpoint: '/v1/audio/transcriptions',
    contentType: SSE,
    body: dataStream(
      { type: 'transcript.text.delta', delta: 'Hi' },
      {
        type: 'transcript.text.done',
        text: 'Hi',
        usage: { type: 'tokens', input_tokens: 14, output_tokens: 45 },
      },
    ),
    usage: usage(null, 14, 45),
  },
  {
    name: 'OpenAI image',
    endpoint: '/v1/images/generations',
    contentType: JSON_TYPE,
    body: '{"created":1713833628,"data":[{"b64_json":"iVBORw0KGgo="}],"usage":{"total_tokens":100,"input_tokens":50,"output_tokens":50,"input_tokens_details":{"text_tokens":10,"image_tokens":40}}}',
    usage: usage(null, 50, 50, null, null, { extra: { images: 1, input_image_tokens: 40 } }),
  },
  {
    name: 'Anthropic message',
    endpoint: '/v1/messages',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      ...MESSAGE,
      usage: {
        input_tokens: 2095,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 1800,
        output_tokens: 503,
        output_tokens_details: { thinking_tokens: 300 },
      },
    }),
    usage: usage('claude-sonnet-4-5-20250929', 3895, 503, 1800, 300, { cacheWriteTokens: 0 }),
  },
  {
    name: 'Anthropic message, streamed',
    endpoint: '/v1/messages',
    contentType: SSE,
    body: messageStream({ output_tokens: 15 }),
    usage: usage('claude-sonnet-4-5-20250929', 2173, 15, 2048, null, { cacheWriteTokens: 100 }),
  },
  {
    name: 'Anthropic message, streamed with server tools: each delta gives the sum until there',
    endpoint: '/v1/messages',
    contentType: SSE,
    body: messageStream(
      { output_tokens: 15 },
      { input_tokens: 10682, cache_read_input_tokens: 4096, output_tokens: 510 },
    ),
    usage: usage('claude-sonnet-4-5-20250929', 14878, 510, 4096, null, { cacheWriteTokens: 100 }),
  },
  {
    name: 'Gemini answer',
    endpoint: '/v1beta/models/gemini-2.5-flash:generateContent',
    contentType: 'application/json; charset=UTF-8',
    body: JSON.stringify(GEMINI[1], null, 2),
    usage: usage('gemini-2.5-flash', 8, 44, 4, 32),
  },
  {
    name: 'Gemini answer, streamed as events',
    endpoint: '/v1beta/models/gemini-2.5-flash:streamGenerateContent',
    contentType: 'text/event-stream',
    body: GEMINI.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`).join(''),
    usage: usage('gemini-2.5-flash', 8, 44, 4, 32),
  },
  {
    name: 'Gemini answer, streamed as an array',
    endpoint: '/v1beta/models/gemini-2.5-flash:streamGenerateContent',
    contentType: 'application/json; charset=UTF-8',
    body: `[${GEMINI.map((event) => JSON.stringify(event, null, 2)).join('\n,\r\n')}\n]\n`,
    usage: usage('gemini-2.5-flash', 8, 44, 4, 32),
  },
  {
    name: 'an OpenAI error',
    endpoint: '/v1/chat/completions',
    contentType: JSON_TYPE,
    body: '{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}',
    usage: { ...usage(null), error: { type: 'requests', code: 'rate_limit_exceeded' } },
  },
];
