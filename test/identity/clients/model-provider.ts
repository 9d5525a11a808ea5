import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** A call as the provider got it. */
export interface ReceivedCall {
  method: string;
  path: string;
  headers: IncomingMessage['headers'];
  body: string;
}

const WORDS = ['The answer', ' of this', ' provider.'];
/** What the provider says to everything. */
export const ANSWER = WORDS.join('');

/** A stand-in for Anthropic and OpenAI that streams valid messages and responses, and counts tokens. */
export class ModelProvider {
  readonly calls: ReceivedCall[] = [];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<ModelProvider> {
    const server = createServer((req, res) => {
      void (async () => {
        const body = await text(req);
        const path = new URL(req.url!, 'http://provider').pathname;
        provider.calls.push({ method: req.method!, path, headers: req.headers, body });
        const answer = answerTo(path, body);
        if (answer === null) return res.writeHead(404, JSON_TYPE).end(NOT_FOUND);
        if (!isStream(answer)) return res.writeHead(200, JSON_TYPE).end(JSON.stringify(answer));
        res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
        for (const event of answer) res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
        return res.end();
      })();
    });
    const provider = new ModelProvider(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Calls of the endpoint that answers. */
  at(path: string): ReceivedCall[] {
    return this.calls.filter((call) => call.path === path);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}

type Event = { type: string } & Record<string, unknown>;

const JSON_TYPE = { 'content-type': 'application/json' };
const NOT_FOUND = JSON.stringify({ type: 'error', error: { type: 'not_found_error', message: 'Not found' } });
const USAGE = { input_tokens: 12, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };

function isStream(answer: Event[] | object): answer is Event[] {
  return Array.isArray(answer);
}

function answerTo(path: string, body: string): Event[] | object | null {
  const { model = 'none', stream = false } = (body === '' ? {} : JSON.parse(body)) as {
    model?: string;
    stream?: boolean;
  };
  if (path.endsWith('/messages/count_tokens')) return { input_tokens: USAGE.input_tokens };
  if (path.endsWith('/messages')) return stream ? messageEvents(model) : message(model, [textBlock(ANSWER)]);
  if (path.endsWith('/responses')) return stream ? responseEvents(model) : response(model, 'completed');
  if (path.endsWith('/chat/completions')) return completion(model);
  return null;
}

const textBlock = (content: string) => ({ type: 'text', text: content });

function message(model: string, content: object[]): object {
  const usage = { ...USAGE, output_tokens: content.length === 0 ? 1 : 9 };
  const stop = { stop_reason: content.length === 0 ? null : 'end_turn', stop_sequence: null };
  return { id: 'msg_01', type: 'message', role: 'assistant', model, content, ...stop, usage };
}

/** The events of Anthropic's Messages API. */
function messageEvents(model: string): Event[] {
  return [
    { type: 'message_start', message: message(model, []) },
    { type: 'content_block_start', index: 0, content_block: textBlock('') },
    ...WORDS.map((words) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: words },
    })),
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 9 },
    },
    { type: 'message_stop' },
  ];
}

const PART = { type: 'output_text', text: ANSWER, annotations: [] };
const ITEM = { id: 'item_01', type: 'message', role: 'assistant', status: 'completed', content: [PART] };

function response(model: string, status: string): object {
  const isDone = status === 'completed';
  const usage = {
    ...{ input_tokens: 12, input_tokens_details: { cached_tokens: 0 } },
    ...{ output_tokens: 9, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 21 },
  };
  return {
    ...{ id: 'resp_01', object: 'response', created_at: 1_700_000_000, model, status },
    ...{ output: isDone ? [ITEM] : [], usage: isDone ? usage : null },
  };
}

/** The events of OpenAI's Responses API. */
function responseEvents(model: string): Event[] {
  const at = { item_id: ITEM.id, output_index: 0, content_index: 0 };
  const started = { ...ITEM, status: 'in_progress', content: [] };
  const events: Event[] = [
    { type: 'response.created', response: response(model, 'in_progress') },
    { type: 'response.output_item.added', output_index: 0, item: started },
    { type: 'response.content_part.added', ...at, part: { ...PART, text: '' } },
    ...WORDS.map((delta) => ({ type: 'response.output_text.delta', ...at, delta })),
    { type: 'response.output_text.done', ...at, text: ANSWER },
    { type: 'response.content_part.done', ...at, part: PART },
    { type: 'response.output_item.done', output_index: 0, item: ITEM },
    { type: 'response.completed', response: response(model, 'completed') },
  ];
  return events.map((event, at) => ({ ...event, sequence_number: at }));
}

function completion(model: string): object {
  const choice = { index: 0, message: { role: 'assistant', content: ANSWER }, finish_reason: 'stop' };
  const usage = { prompt_tokens: 12, completion_tokens: 9, total_tokens: 21 };
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_700_000_000,
    model,
    choices: [choice],
    usage,
  };
}
