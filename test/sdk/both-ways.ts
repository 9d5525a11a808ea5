import { isNativeError } from 'node:util/types';

/** Records one use of an SDK, below and above it, so that two ways to reach a provider can be compared. */

export interface Answer {
  status: number;
  reason: string;
  headers: [name: string, value: string][];
  /** Bytes of the body as fetch gave them to the SDK, up to where it ended or broke; latin-1, to read a difference. */
  body: string;
}

export interface Heard {
  /** What the SDK returned, or what it threw. */
  value?: unknown;
  error?: Record<string, unknown>;
  answers: Answer[];
}

/**
 * What may differ between two answers to the same request: the clock, and what belongs to one connection alone
 * (RFC 9110 7.6.1). `x-gateway-request-id` is the one thing the gateway adds, and is looked at by itself.
 */
const OF_THIS_HOP = new Set([
  'date',
  'connection',
  'keep-alive',
  'transfer-encoding',
  'x-gateway-request-id',
]);

const endToEnd = (headers: Headers): [string, string][] =>
  [...headers].filter(([name]) => !OF_THIS_HOP.has(name));

/** Runs a use of an SDK with a fetch that listens in. */
export async function hear(use: (fetch: typeof globalThis.fetch) => Promise<unknown>): Promise<Heard> {
  const answers: Answer[] = [];
  const listening: typeof globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init);
    // The OpenAI SDK tries its fetch on a data: URL before it sends a form.
    if (input === 'data:,') return response;
    const { status, statusText: reason } = response;
    const answer: Answer = { status, reason, headers: endToEnd(response.headers), body: '' };
    answers.push(answer);
    const head = { status, statusText: reason, headers: response.headers };
    if (!response.ok) {
      // Read to its end here: an SDK that tries again cancels the body, sooner or later.
      const bytes = Buffer.from(await response.arrayBuffer());
      answer.body = bytes.toString('latin1');
      return new Response(bytes, head);
    }
    return new Response(response.body && listenTo(response.body, answer), head);
  };
  try {
    const value = await use(listening);
    return { value, answers };
  } catch (error) {
    return { error: describe(error), answers };
  }
}

/** The same body, chunk by chunk, with a copy left in the answer. */
function listenTo(body: ReadableStream<Uint8Array>, answer: Answer): ReadableStream<Uint8Array> {
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        answer.body += Buffer.from(chunk).toString('latin1');
        controller.enqueue(chunk);
      },
    }),
  );
}

/** Everything an application may look at in a thrown error but its stack. */
function describe(error: unknown): Record<string, unknown> {
  // Not instanceof: fetch's errors come from outside the realm that Jest runs tests in.
  if (!isNativeError(error)) throw new TypeError('something else than an error was thrown');
  const { headers, cause, ...fields } = error as Error & { headers?: unknown };
  return {
    ...fields,
    class: error.constructor.name,
    message: error.message,
    headers: headers instanceof Headers ? endToEnd(headers) : null,
    cause: isNativeError(cause) ? describe(cause) : null,
  };
}

/** All events of a stream. */
export async function collect<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const events: T[] = [];
  for await (const event of stream) events.push(event);
  return events;
}
