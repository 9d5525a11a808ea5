import { ADMIN_TOKEN } from '../support/gateway.js';
import { timePasses } from '../support/eventually.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { JSON_TYPE, usageResponse } from '../limits/limited-gateway.js';

/** A kind of key, and whether its calls have an Idempotency-Key. */
export interface Kind {
  name: string;
  key: string;
  replays: boolean;
}

interface Sent {
  kind: string;
  status: number | null;
}

/** Calls of every kind of key through several replicas, and what the provider received of each. */
export class FailoverLoad {
  /** How often the provider received a call, by its number: the end user of its request. */
  readonly arrivals = new Map<string, number>();
  readonly sent = new Map<string, Sent>();
  private running = false;
  private number = 0;
  private loops: Promise<void>[] = [];

  private constructor(readonly provider: RawProvider) {}

  static async start(): Promise<FailoverLoad> {
    const provider = await RawProvider.start(() => {});
    const load = new FailoverLoad(provider);
    provider.script = async ({ body, socket }) => {
      const { bytes } = await body;
      // The list of models has no body.
      const user = bytes.length === 0 ? null : (JSON.parse(bytes.toString()) as { user: string }).user;
      if (user !== null) load.arrivals.set(user, (load.arrivals.get(user) ?? 0) + 1);
      socket.write(answer('200 OK', JSON_TYPE, usageResponse({ input: 10, output: 10 })));
    };
    return load;
  }

  /** @param paceMs of each client, one for each kind of key and replica */
  run(urls: readonly string[], kinds: readonly Kind[], paceMs = 500): void {
    this.running = true;
    this.loops = urls.flatMap((url) => kinds.map((kind) => this.loop(url, kind, paceMs)));
  }

  async stop(): Promise<void> {
    this.running = false;
    await Promise.all(this.loops);
  }

  /** Sends a call, also again. @returns its status; null: it broke */
  async send(url: string, { key, replays }: Kind, user: string, maxTokens = 100): Promise<number | null> {
    try {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(replays && { 'idempotency-key': `"${user}"` }),
        },
        body: JSON.stringify({ model: 'm', max_tokens: maxTokens, user }),
        signal: AbortSignal.timeout(60_000),
      });
      await response.arrayBuffer();
      return response.status;
    } catch {
      // Its replica was killed.
      return null;
    }
  }

  private async loop(url: string, kind: Kind, paceMs: number): Promise<void> {
    while (this.running) {
      const user = `${kind.name}-${++this.number}`;
      const status = await this.send(url, kind, user);
      this.sent.set(user, { kind: kind.name, status });
      if (status === null) return;
      await timePasses(paceMs, 'the pace of a client');
    }
  }
}

/** A request to the admin API. */
export async function admin<T>(url: string, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}
