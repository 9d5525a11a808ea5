import { randomUUID } from 'node:crypto';
import { startTestGateway, type TestGateway } from './gateway.js';
import { RawClient, type ReceivedResponse, request } from './raw-client.js';
import { answer, RawProvider, type Script } from './raw-provider.js';

/** Answers every request with its own target in `X-Target` and its own body. */
export const echo: Script = async (req) => {
  const received = await req.body.catch(() => null);
  if (received === null) return;
  const target = req.head.split(' ', 2)[1]!;
  const reply = answer('200 OK', [`X-Target: ${target}`], received.bytes);
  const isHead = req.head.startsWith('HEAD ');
  req.socket.write(isHead ? reply.subarray(0, reply.indexOf('\r\n\r\n') + 4) : reply);
};

/** A gateway between raw bytes and a raw provider, which counts what the provider was entitled to see. */
export class Wire {
  private legal = 0;

  private constructor(
    readonly gateway: TestGateway,
    readonly provider: RawProvider,
    /** A header line with a key that may use every endpoint. */
    readonly auth: string,
  ) {}

  /** @param variables environment variables over the defaults of a test */
  static async start(variables: Record<string, string> = {}, script: Script = echo): Promise<Wire> {
    const provider = await RawProvider.start(script);
    const gateway = await startTestGateway({ PROVIDER_URL: provider.url, ...variables });
    const key = await gateway.createKey({ endpoints: 'all' });
    return new Wire(gateway, provider, `Authorization: Bearer ${key}`);
  }

  connect(): Promise<RawClient> {
    return RawClient.connect(this.gateway.port);
  }

  /**
   * Sends these bytes on a connection of their own.
   *
   * @param count how many answers to wait for
   * @returns the answers that came until then, or until the gateway closed the connection
   */
  async send(bytes: string | Buffer, count = 1): Promise<ReceivedResponse[]> {
    const client = await this.connect();
    client.send(bytes);
    const answers = await responsesOn(client, count);
    client.destroy();
    return answers;
  }

  /** One well-formed call; its answer. */
  async call(line: string, headers: string[] = [], body: string | Buffer = ''): Promise<ReceivedResponse> {
    const client = await this.connect();
    client.send(request(line, [this.auth, ...headers], body));
    const reply = await client.answer({ bodyless: line.startsWith('HEAD ') });
    client.destroy();
    return reply;
  }

  /**
   * What must hold after everything a client may try: the process serves a valid call on a fresh connection with that
   * call's own answer, and the provider has seen what clients were entitled to and not a request more.
   *
   * @param legal requests the client legally sent since the last time
   */
  async expectSound(legal: number): Promise<void> {
    const target = `/v1/chat/completions?probe=${randomUUID()}`;
    const { script } = this.provider;
    this.provider.script = echo;
    const reply = await this.call(`POST ${target}`, [], target);
    this.provider.script = script;
    expect([reply.status, reply.header('x-target'), reply.body.toString()]).toEqual([200, target, target]);
    this.legal += legal + 1;
    expect(this.provider.requests.map(({ head }) => head.split('\r\n')[0])).toHaveLength(this.legal);
  }

  /** A rejection of the gateway's own, in its documented shape. */
  expectRejection(reply: ReceivedResponse | undefined, status: number, code: string): void {
    expect([reply?.status, reply?.header('x-gateway-error')]).toEqual([status, code]);
    expect(reply!.header('content-type')).toBe('application/json');
    expect(reply!.header('x-gateway-request-id')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}$/);
    expect(JSON.parse(reply!.body.toString())).toEqual({
      error: {
        message: expect.any(String) as string,
        type: expect.any(String) as string,
        param: null,
        code,
      },
    });
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    await this.provider.stop();
  }
}

/** The answers that come on a connection: at most `count`, fewer when the gateway closes it. */
export async function responsesOn(client: RawClient, count: number): Promise<ReceivedResponse[]> {
  const answers: ReceivedResponse[] = [];
  while (answers.length < count) {
    const reply = await client.answer().catch(() => null);
    if (reply === null) break;
    answers.push(reply);
  }
  return answers;
}
