import { RawClient, type ReceivedResponse, request } from './raw-client.js';
import { chunk, LAST_CHUNK, RawProvider, type ReceivedRequest, STREAM_HEAD } from './raw-provider.js';

/** What the provider itself knows of one call. */
interface Account {
  /** How often its request arrived: more than once would be a doubled call. */
  arrivals: number;
  /** The whole answer was handed to the system. */
  sentAll: boolean;
}

/** What a row says of one call. */
export interface LoggedCall {
  idempotency_key: string;
  outcome: string;
  status: number | null;
}

const CHUNKS = 8;

/**
 * Load through a gateway, and the books of both ends: the provider's own account of what it received and sent, and what
 * the clients got. A call is told by its `Idempotency-Key`, which goes on to the provider and into the row.
 */
export class AccountedLoad {
  readonly seen = new Map<string, Account>();
  /** Calls whose client has the whole answer. */
  readonly answered = new Set<string>();
  /** Calls rejected by the gateway, with its code, or by what stands in front of it, with the status. */
  readonly rejected = new Map<string, string>();
  /** Calls without an answer, or with one that broke off. */
  readonly broken = new Set<string>();
  /** Calls whose client left on purpose. */
  readonly left = new Set<string>();
  /** Settles a little later than each chunk of a stream but the first: how long a stream goes on. */
  pace: () => Promise<void> = () => new Promise((resolve) => setImmediate(resolve));
  /** JSON and streams in turn, or streams alone. */
  streamsOnly = false;
  /** Calls of a client share a connection, or each has its own. */
  keepsConnections = true;
  private number = 0;
  private singles = 0;
  private running = false;
  private readonly clients = new Set<RawClient>();
  private loops: Promise<void>[] = [];

  private constructor(readonly provider: RawProvider) {
    provider.script = (req) => this.serve(req);
  }

  static async start(): Promise<AccountedLoad> {
    return new AccountedLoad(await RawProvider.start(() => {}));
  }

  /** Keeps so many clients calling until stop(). @param padding makes the lines of the journal longer */
  run(url: string, key: string, clients: number, padding = ''): void {
    this.running = true;
    const port = Number(new URL(url).port);
    this.loops = Array.from({ length: clients }, (_, i) => this.loop(port, key, i, padding));
  }

  /** Lets calls under way end, or breaks them when the gateway is gone. */
  async stop({ gone = false } = {}): Promise<void> {
    this.running = false;
    if (gone) for (const client of this.clients) client.destroy();
    await Promise.all(this.loops);
  }

  async close(): Promise<void> {
    await this.stop({ gone: true });
    await this.provider.stop();
  }

  /** One JSON call on a connection of its own, in the books like the others. */
  async once(url: string, key: string): Promise<ReceivedResponse> {
    const client = await RawClient.connect(Number(new URL(url).port));
    const call = `call-${(this.singles += 2)}-once`;
    client.send(this.request(call, key));
    const reply = await client.answer();
    this.note(call, reply);
    client.destroy();
    return reply;
  }

  /** Compares rows with both ends' books. @returns what does not fit, in words; empty when all does */
  judge(rows: readonly LoggedCall[]): string[] {
    const wrong: string[] = [];
    const byCall = new Map<string, LoggedCall[]>();
    for (const row of rows)
      byCall.set(row.idempotency_key, [...(byCall.get(row.idempotency_key) ?? []), row]);
    for (const [call, found] of byCall) {
      const name = call.slice(0, 30);
      if (found.length > 1) wrong.push(`${name} has ${found.length} rows`);
      const { outcome, status } = found[0]!;
      const account = this.seen.get(call);
      if (outcome === 'completed' && !account?.sentAll) wrong.push(`${name} is said to be completed`);
      if (outcome === 'completed' && status !== 200) wrong.push(`${name} completed with ${status}`);
      // Without a request at the provider only death or leaving explains a row.
      const explained = ['interrupted', 'client_aborted', 'completed'];
      if (!explained.includes(outcome)) wrong.push(`${name} is ${outcome}`);
      if (outcome === 'client_aborted' && !this.left.has(call)) wrong.push(`${name} left, says its row`);
      if (this.rejected.has(call)) wrong.push(`${name} was rejected and has a row`);
    }
    for (const [call, { arrivals }] of this.seen) {
      const name = call.slice(0, 30);
      if (arrivals !== 1) wrong.push(`${name} reached the provider ${arrivals} times`);
      const row = byCall.get(call)?.[0];
      if (row === undefined) wrong.push(`${name} has no row`);
      if (this.answered.has(call) && row?.outcome !== 'completed')
        wrong.push(`${name} was answered: ${row?.outcome}`);
    }
    return wrong;
  }

  private async serve({ headers, body, socket }: ReceivedRequest): Promise<void> {
    const call = headers.find(([name]) => name.toLowerCase() === 'idempotency-key')![1];
    const account = this.seen.get(call) ?? { arrivals: 0, sentAll: false };
    this.seen.set(call, account);
    account.arrivals++;
    if ((await body.catch(() => null)) === null) return;
    if (/^call-\d*[02468](-|$)/.test(call)) {
      account.sentAll = true;
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"usage":{} }`,
      );
      return;
    }
    socket.write(STREAM_HEAD);
    for (let i = 0; i < CHUNKS; i++) {
      socket.write(chunk(`data: {"n":${i}}\n\n`));
      await this.pace();
      if (socket.destroyed) return;
    }
    // Said before it is done: what was handed to a socket cannot be told from what arrived.
    account.sentAll = true;
    socket.write(LAST_CHUNK);
  }

  private async loop(port: number, key: string, index: number, padding: string): Promise<void> {
    let client: RawClient | null = null;
    while (this.running) {
      client ??= await RawClient.connect(port).catch(() => null);
      // The gateway is gone.
      if (client === null) return;
      this.clients.add(client);
      this.number += this.streamsOnly && this.number % 2 === 1 ? 2 : 1;
      const call = `call-${this.number}${padding}`;
      client.send(this.request(call, key));
      const leaves = index === 0 && this.number % 7 === 0;
      const whole = leaves ? await this.leave(client, call) : await this.takeAnswer(client, call);
      if (whole && this.keepsConnections && !client.socket.destroyed) continue;
      client.destroy();
      this.clients.delete(client);
      client = null;
    }
    client?.destroy();
  }

  private async takeAnswer(client: RawClient, call: string): Promise<boolean> {
    const reply = await client.answer().catch(() => null);
    if (reply === null) this.broken.add(call);
    return reply !== null && this.note(call, reply) && reply.header('connection') !== 'close';
  }

  private request(call: string, key: string): Buffer {
    const headers = [`Authorization: Bearer ${key}`, `Idempotency-Key: ${call}`];
    return request('POST /v1/chat/completions', headers, '{"model":"m","stream":true}');
  }

  /** @returns whether it was the provider's answer */
  private note(call: string, reply: ReceivedResponse): boolean {
    // The provider answers nothing but 200.
    const code = reply.status === 200 ? undefined : (reply.header('x-gateway-error') ?? `${reply.status}`);
    if (code !== undefined) this.rejected.set(call, code);
    else this.answered.add(call);
    return code === undefined;
  }

  private async leave(client: RawClient, call: string): Promise<boolean> {
    this.left.add(call);
    await client.head().catch(() => null);
    return false;
  }
}
