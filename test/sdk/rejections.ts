import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

/** One call through an SDK that the gateway itself answers. */
export interface Call {
  /** The gateway's address, and what precedes the SDK's own path. */
  url: string;
  key: string;
  path?: string;
  method?: 'get' | 'post' | 'trace';
  query?: Record<string, string>;
  headers?: Record<string, string | null>;
  body?: object;
  maxRetries?: number;
  fetch?: typeof globalThis.fetch;
}

export interface Rejected {
  error: Error & {
    status: number;
    headers: Headers;
    code?: string;
    type?: string;
    error: unknown;
    requestID: string | null;
  };
  attempts: number;
}

const BODY = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] };

/** Counts what the SDK sends, retries included. */
function counting(inner: typeof globalThis.fetch = fetch) {
  const counted = {
    attempts: 0,
    fetch: (...args: Parameters<typeof inner>) => {
      counted.attempts++;
      return inner(...args);
    },
  };
  return counted;
}

async function rejection(call: Promise<unknown>): Promise<Rejected['error']> {
  try {
    await call;
  } catch (error) {
    return error as Rejected['error'];
  }
  throw new Error('the call was not rejected');
}

export const SDKS = {
  openai: {
    classes: OpenAI,
    send: (call: Call, fetch: typeof globalThis.fetch) =>
      new OpenAI({
        baseURL: call.url,
        apiKey: call.key,
        maxRetries: call.maxRetries ?? 2,
        fetch,
      }).request({ ...options(call), path: call.path ?? '/v1/chat/completions' }),
  },
  anthropic: {
    classes: Anthropic,
    send: (call: Call, fetch: typeof globalThis.fetch) =>
      new Anthropic({
        baseURL: call.url,
        apiKey: call.key,
        authToken: null,
        maxRetries: call.maxRetries ?? 2,
        fetch,
      }).request({ ...options(call), path: call.path ?? '/v1/messages' }),
  },
};

export type Sdk = keyof typeof SDKS;

function options({ method = 'post', query, headers, body = BODY }: Call) {
  return { method: method as 'post', query, headers, ...(method === 'post' && { body }) };
}

/** The error an SDK raises, and how often it asked. */
export async function reject(sdk: Sdk, call: Call): Promise<Rejected> {
  const counted = counting(call.fetch);
  const error = await rejection(SDKS[sdk].send(call, counted.fetch));
  return { error, attempts: counted.attempts };
}
