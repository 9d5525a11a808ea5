/**
 * aimock in a process of its own, made deterministic: the same request gets the same bytes twice, so that an answer got
 * through the gateway can be compared with one got directly without leaving anything out. Clock and random source are
 * set before aimock is loaded; timers are not touched. Prints its URL; ends with its standard input.
 */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const MOMENT = 1_790_000_000_000;
Date.now = () => MOMENT;
crypto.randomBytes = (size) => Buffer.alloc(size, 0x5a);
crypto.randomUUID = () => '5a5a5a5a-5a5a-4a5a-8a5a-5a5a5a5a5a5a';
syncBuiltinESMExports();

const { LLMock } = await import('@copilotkit/aimock');

// Only this secret opens the stand-in: the gateway's own key must never do.
const mock = new LLMock({ port: 0, chunkSize: 7, auth: { apiKeys: [process.argv[2]] } });
const error = (status, type, code, message, more = {}) => ({
  status,
  error: { message, type, param: null, code },
  ...more,
});

mock.onMessage('hello', { content: 'Hi there! Voilà: 你好 👋 — and a longer tail of text.' });
mock.onMessage('think', { content: 'Forty-two.', reasoning: 'Let me think about it.' });
mock.onMessage('weather', {
  content: 'Looking it up.',
  toolCalls: [
    { id: 'call_paris', name: 'get_weather', arguments: '{"city":"Paris","unit":"c"}' },
    { id: 'call_oslo', name: 'get_weather', arguments: '{"city":"Oslo"}' },
  ],
});
mock.onMessage('err400', error(400, 'invalid_request_error', 'unsupported_value', 'No such temperature.'));
mock.onMessage('err401', error(401, 'authentication_error', 'invalid_api_key', 'Incorrect API key.'));
mock.onMessage('err403', error(403, 'permission_error', 'unsupported_country', 'Not in your region.'));
mock.onMessage('err404', error(404, 'invalid_request_error', 'model_not_found', 'No such model.'));
mock.onMessage('err409', error(409, 'invalid_request_error', 'conflict', 'It changed meanwhile.'));
mock.onMessage('err422', error(422, 'invalid_request_error', 'unprocessable', 'Cannot process this.'));
mock.onMessage(
  'err429',
  error(429, 'rate_limit_error', 'rate_limit_exceeded', 'Slow down.', { retryAfter: 7 }),
);
mock.onMessage('err500', error(500, 'server_error', null, 'The server had an error.'));
mock.onMessage('err503', error(503, 'server_error', 'overloaded', 'Overloaded.'));
mock.onEmbedding('embed me', { embedding: Array.from({ length: 64 }, (_, i) => Math.fround(i / 64 - 0.5)) });
mock.onModerate('bad', {
  flagged: true,
  categories: { violence: true },
  category_scores: { violence: 0.98 },
});
mock.onSpeech('say', {
  audio: Buffer.from(Array.from({ length: 4_096 }, (_, i) => i % 256)).toString('base64'),
});
mock.onTranscription({ transcription: { text: 'The quick brown fox.', language: 'english', duration: 1.5 } });
mock.onTranslation({ transcription: { text: 'Hello, world.' } });
mock.onImage('a cat', { image: { b64Json: Buffer.from('not really a PNG').toString('base64') } });

/** What aimock has no answer for: recorded from the APIs' references. */
const recorded = (path, method, body, headers = {}) =>
  mock.mount(path, {
    handleRequest: async (req, res) => {
      if (req.method !== method) return false;
      for await (const chunk of req) void chunk;
      res.writeHead(200, { 'Content-Type': 'application/json', ...headers });
      res.end(JSON.stringify(body));
      return true;
    },
  });
recorded('/v1/models/gpt-4o', 'GET', {
  id: 'gpt-4o',
  object: 'model',
  created: 1715367049,
  owned_by: 'system',
});
recorded(
  '/v1/messages/count_tokens',
  'POST',
  { input_tokens: 2095 },
  { 'request-id': 'req_018EeWyXxfu5pfWkrYcMdjWG' },
);

await mock.start();
process.stdout.write(`${mock.url}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
