import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { afterFile } from '../support/after-file.js';

const running = new Set<WsProvider>();
afterFile(async () => {
  await Promise.all([...running].map((provider) => provider.stop()));
});

/** A provider that speaks WebSockets, with the library of most clients and servers. */
export class WsProvider {
  readonly handshakes: IncomingMessage[] = [];
  readonly sockets: WebSocket[] = [];
  /** Called for each connection. */
  script: (socket: WebSocket) => void = () => {};

  private constructor(
    private readonly server: Server,
    webSockets: WebSocketServer,
  ) {
    webSockets.on('connection', (socket, request) => {
      this.handshakes.push(request);
      this.sockets.push(socket);
      socket.on('error', () => {});
      this.script(socket);
    });
  }

  static async start(perMessageDeflate: boolean | object = true): Promise<WsProvider> {
    const server = createServer((_, res) => res.writeHead(404).end('plain'));
    const webSockets = new WebSocketServer({
      server,
      perMessageDeflate,
      verifyClient: ({ req }, done) => done(req.headers['x-reject'] === undefined, 401, 'not by us'),
      handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
    });
    const provider = new WsProvider(server, webSockets);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    running.add(provider);
    return provider;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    if (!running.delete(this)) return;
    for (const socket of this.sockets) socket.terminate();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

export interface Closing {
  code: number;
  reason: string;
}

/** A client of the gateway, and what becomes of it. */
export class WsClient {
  readonly messages: string[] = [];
  /** The `x-gateway-request-id` of the response to the handshake. */
  requestId = '';
  readonly opened: Promise<void>;
  readonly closed: Promise<Closing>;

  private constructor(readonly socket: WebSocket) {
    this.opened = new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    this.opened.catch(() => {});
    this.closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
    );
    socket.on('upgrade', ({ headers }) => (this.requestId = String(headers['x-gateway-request-id'])));
    socket.on('message', (data: Buffer) => this.messages.push(data.toString()));
    socket.on('error', () => {});
  }

  static connect(
    gateway: string,
    path: string,
    headers: Record<string, string>,
    options: { protocols?: string[]; perMessageDeflate?: boolean } = {},
  ): WsClient {
    const { protocols = [], perMessageDeflate = true } = options;
    const url = gateway.replace('http', 'ws') + path;
    return new WsClient(new WebSocket(url, protocols, { headers, perMessageDeflate }));
  }
}

/** The last event of a response, as the Realtime API sends it. */
export function responseDone(input: number, output: number): string {
  return JSON.stringify({
    type: 'response.done',
    event_id: 'event_1',
    response: {
      id: 'resp_1',
      output: [{ type: 'message', content: [{ type: 'audio', transcript: '"usage": "response.done"' }] }],
      usage: {
        total_tokens: input + output,
        input_tokens: input,
        output_tokens: output,
        input_token_details: { text_tokens: input, audio_tokens: 3, cached_tokens: 2 },
        output_token_details: { text_tokens: output, audio_tokens: 4 },
      },
    },
  });
}

/** The last event of a response, as the Responses API sends it. */
export function responseCompleted(input: number, output: number, model = 'gpt-5.6', text = ''): string {
  return JSON.stringify({
    type: 'response.completed',
    sequence_number: 9,
    response: {
      id: 'resp_1',
      model,
      output: [{ type: 'message', content: [{ type: 'output_text', text }] }],
      usage: {
        input_tokens: input,
        input_tokens_details: { cached_tokens: 1 },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: 1 },
        total_tokens: input + output,
      },
      user: null,
    },
  });
}
