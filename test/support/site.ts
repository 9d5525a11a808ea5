import { createDatabase, type TestDatabase } from './database.js';
import { startTestGateway } from './gateway.js';
import type { GatewayProcess } from './process.js';
import { RawClient, request } from './raw-client.js';
import { answer, RawProvider, type Script } from './raw-provider.js';
import { Workplace } from './workplace.js';

const ok: Script = async ({ body, socket }) => {
  await body;
  socket.write(answer('200 OK', [], 'ok'));
};

/** What gateway processes need: a database, a folder to start in, and a provider. */
export class Site {
  private constructor(
    readonly database: TestDatabase,
    readonly workplace: Workplace,
    readonly provider: RawProvider,
  ) {}

  /** @param options.empty the database is not migrated */
  static async make({ script = ok, empty = false } = {}): Promise<Site> {
    const database = await createDatabase({ empty });
    return new Site(database, await Workplace.make(), await RawProvider.start(script));
  }

  /** Starts a gateway. @param more settings over those that lead to the database and the provider */
  gateway(more: Record<string, string> = {}): GatewayProcess {
    const settings = { DATABASE_URL: this.database.url, PROVIDER_URL: this.provider.url };
    return this.workplace.gateway({ ...settings, ...more });
  }

  /** The first key, of a gateway in the test's own process: those that start afterwards print none. */
  async firstKey(): Promise<string> {
    const first = await startTestGateway({}, this.database);
    await first.stop();
    return first.key;
  }

  async remove(): Promise<void> {
    await this.workplace.remove();
    await this.provider.stop();
    await this.database.drop();
  }
}

/** Sends one call on a connection of its own; its response is the caller's to await. */
export async function send(
  url: string,
  key: string,
  headers: string[] = [],
  body = '{}',
): Promise<RawClient> {
  const client = await RawClient.connect(Number(new URL(url).port));
  client.send(request('POST /v1/chat/completions', [`Authorization: Bearer ${key}`, ...headers], body));
  return client;
}

/** One call, which must succeed. @returns its request ID */
export async function complete(url: string, key: string): Promise<string> {
  const client = await send(url, key);
  const reply = await client.answer();
  expect(reply.status).toBe(200);
  client.destroy();
  return reply.header('x-gateway-request-id')!;
}
