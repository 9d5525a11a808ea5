import { startTestGateway, type LogRowView, type TestGateway } from '../support/gateway.js';
import { eventually } from '../support/eventually.js';
import { RawClient, type ReceivedResponse, request } from '../support/raw-client.js';
import { answer, RawProvider, type ReceivedRequest, type Script } from '../support/raw-provider.js';

/** A gateway with providers a, b and c, each with a script of its own. */
export class Routed {
  private names = 0;

  private constructor(
    readonly gateway: TestGateway,
    readonly providers: Readonly<Record<'a' | 'b' | 'c', RawProvider>>,
    readonly auth: string,
  ) {}

  static async start(variables: Record<string, string> = {}): Promise<Routed> {
    const [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => RawProvider.start(says(name))));
    const gateway = await startTestGateway(variables);
    const providers = { a: a!, b: b!, c: c! };
    for (const [name, { url }] of Object.entries(providers))
      await gateway.admin('POST', '/providers', { name, url, secret: `sk-of-${name}-0123456789` });
    const key = await gateway.createKey({ endpoints: 'all', idempotency: 'replay' });
    return new Routed(gateway, providers, `Authorization: Bearer ${key}`);
  }

  /** Scripts of the providers; those without one answer with their name. Forgets the requests seen. */
  script(scripts: Partial<Record<'a' | 'b' | 'c', Script>>): void {
    for (const [name, provider] of Object.entries(this.providers)) {
      provider.script = scripts[name as 'a'] ?? says(name);
      provider.requests.length = 0;
    }
  }

  /** A new route, to a and b unless told otherwise. @returns its name */
  async route(settings: object = {}): Promise<string> {
    const name = `route-${++this.names}`;
    const targets = [{ provider: 'a' }, { provider: 'b' }];
    await this.gateway.admin('POST', '/routes', { name, targets, ...settings });
    return name;
  }

  async send(line: string, headers: string[] = [], body: string | Buffer = '{}'): Promise<ReceivedResponse> {
    const client = await RawClient.connect(this.gateway.port);
    client.send(request(line, [this.auth, ...headers], body));
    const reply = await client.answer();
    client.destroy();
    return reply;
  }

  call(route: string, headers: string[] = [], body: string | Buffer = '{}'): Promise<ReceivedResponse> {
    return this.send(`POST /p/${route}/v1/chat/completions`, headers, body);
  }

  /** How many requests a, b and c got. */
  get counts(): number[] {
    return Object.values(this.providers).map(({ requests }) => requests.length);
  }

  /** The rows of a call, once the last of them is there. */
  async rows(reply: Pick<ReceivedResponse, 'header'>): Promise<LogRowView[]> {
    const id = reply.header('x-gateway-request-id');
    let rows: LogRowView[] = [];
    await eventually(async () => {
      rows = await this.gateway.database.query<LogRowView>(
        'SELECT * FROM request_log WHERE call_id = $1 ORDER BY attempt',
        [id],
      );
      return rows.some(({ outcome }) => outcome !== 'retried');
    });
    return rows;
  }
}

export function says(text: string): Script {
  return replies('200 OK', [], text);
}

export function replies(status: string, headers: string[] = [], body: string | Buffer = ''): Script {
  return async (req) => {
    await req.body.catch(() => {});
    req.socket.write(answer(status, headers, body));
  };
}

/** Takes the request and closes the connection. */
export const closes: Script = async (req: ReceivedRequest) => {
  await req.body;
  req.socket.end();
};
