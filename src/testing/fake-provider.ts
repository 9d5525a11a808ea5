import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * An event of a stream. A string, such as `[DONE]`, is its data as it is; an object is its data as JSON. With a name:
 * `{ event: 'message_start', data: {…} }`.
 */
export type FakeEvent = string | object | { event: string; data: string | object };

/** What a provider responds. */
export interface FakeResponse {
  /** 200 unless given. */
  status?: number;
  headers?: Record<string, string | string[]>;
  /** The body as JSON. */
  json?: unknown;
  /** A stream of server-sent events. */
  sse?: readonly FakeEvent[];
  /** The body as it is. */
  body?: string | Uint8Array;
  /** How long it takes to respond. */
  delayMs?: number;
  /** How long it takes before each event after the first. */
  eventDelayMs?: number;
  /** Breaks the connection in place of the end of the body: a provider that fails half-way. */
  breaks?: boolean;
}

/** A request that a provider received whole. */
export interface FakeRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** By lower-case names. */
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, in order and case. */
  readonly rawHeaders: readonly string[];
  /** The bytes, as they were sent. */
  readonly body: Buffer;
  /** The body as JSON. @throws SyntaxError */
  json<T = unknown>(): T;
}

const COMPLETION: FakeResponse = {
  json: {
    id: 'chatcmpl-fake',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'fake-model',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  },
};

/** A response, or what makes it of a request. */
export type FakeResponder = FakeResponse | ((request: FakeRequest) => FakeResponse | Promise<FakeResponse>);

/**
 * A provider on a port of this machine, which responds what a test says and records what it receives. Unless told
 * otherwise, it responds a chat completion of 3 and 2 tokens.
 */
export class FakeProvider {
  /** In the order in which their bodies had arrived. */
  readonly requests: FakeRequest[] = [];
  private responses: FakeResponder[] = [COMPLETION];

  private constructor(private readonly server: Server) {}

  static async start(): Promise<FakeProvider> {
    const server = createServer();
    const provider = new FakeProvider(server);
    server.on('request', (req: IncomingMessage, res: ServerResponse) => {
      // A client that ends its connection ends its request alone.
      provider.serve(req, res).catch(() => res.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /**
   * Says what the next requests get, one after the other; the last one is for all that follow. It replaces what was said
   * before.
   *
   *     provider.respond({ json: { choices: [] } });
   *     provider.respond({ sse: [{ choices: [] }, '[DONE]'] });
   *     provider.respond({ status: 429, headers: { 'retry-after': '1' }, json: {} }, { json: { choices: [] } });
   *     provider.respond((request) => ({ body: request.body }));
   */
  respond(...responses: [FakeResponder, ...FakeResponder[]]): void {
    this.responses = responses;
  }

  /** Also ends calls that it has not responded to yet. */
  async stop(): Promise<void> {
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  private async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of req) parts.push(part as Buffer);
    const body = Buffer.concat(parts);
    const { method = '', url = '', headers, rawHeaders } = req;
    const json = <T>() => JSON.parse(body.toString()) as T;
    const request: FakeRequest = { method, url, headers, rawHeaders, body, json };
    this.requests.push(request);
    const responder = this.responses.length > 1 ? this.responses.shift()! : this.responses[0]!;
    await send(res, typeof responder === 'function' ? await responder(request) : responder);
  }
}

async function send(res: ServerResponse, response: FakeResponse): Promise<void> {
  const {
    status = 200,
    headers = {},
    json,
    sse,
    body = '',
    delayMs,
    eventDelayMs,
    breaks = false,
  } = response;
  if (delayMs !== undefined) await sleep(delayMs, undefined, { ref: false });
  const type = sse ? 'text/event-stream' : json === undefined ? null : 'application/json';
  if (type !== null) res.setHeader('content-type', type);
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.statusCode = status;
  const parts = sse?.map(eventText) ?? [json === undefined ? body : JSON.stringify(json)];
  const isStream = sse !== undefined || breaks;
  for (const [at, part] of parts.entries()) {
    if (at > 0 && eventDelayMs !== undefined) await sleep(eventDelayMs, undefined, { ref: false });
    if (!isStream) res.end(part);
    else if (part.length > 0) await new Promise((written) => res.write(part, written));
  }
  if (breaks) res.destroy();
  else if (isStream) res.end();
}

function eventText(event: FakeEvent): string {
  const named = typeof event === 'object' && 'event' in event && 'data' in event ? event : null;
  const data = named === null ? event : named.data;
  const name = named === null ? '' : `event: ${String(named.event)}\n`;
  return `${name}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}
