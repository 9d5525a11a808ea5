import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A provider whose every response reports 1,000 input tokens and 100 output tokens. */
export interface ModelProvider {
  url: string;
  stop(): Promise<void>;
}

const RESPONSE = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  model: 'priced-model',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 },
});

export async function startModelProvider(): Promise<ModelProvider> {
  const server: Server = createServer((req, res) => {
    req.resume().on('end', () => {
      res.setHeader('content-type', 'application/json');
      res.end(req.url === '/v1/models' ? '{"object":"list","data":[]}' : RESPONSE);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () => {
      server.closeAllConnections();
      return new Promise((closed) => server.close(() => closed()));
    },
  };
}

/** Sends a call with a gateway key. @returns its status */
export async function callWith(url: string, key: string, model = 'priced-model'): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  await response.arrayBuffer();
  return response.status;
}
