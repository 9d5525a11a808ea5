import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { createDatabase, type TestDatabase } from './database.js';
import { eventually, timePasses } from './eventually.js';
import { ADMIN_TOKEN } from './gateway.js';
import type { GatewayProcess } from './process.js';
import { answer, RawProvider } from './raw-provider.js';
import { Workplace } from './workplace.js';
import { type Issued, JSON_TYPE, type Reply, sendTo, usageResponse } from '../limits/limited-gateway.js';

interface Replica {
  workplace: Workplace;
  gateway: GatewayProcess;
  url: string;
}

/** What came of the calls of a load. */
export interface Outcome {
  forwarded: number;
  /** Rejections by code. */
  rejected: Map<string, number>;
  /** Calls without a response: their gateway was killed. */
  broken: number;
}

/** Gateway processes with one database and one provider, as they run in production. */
export class Replicas {
  /** Output tokens and duration of the next call. */
  call: () => { output: number; ms: number } = () => ({ output: 500, ms: 20 });
  /** Calls that the provider works on, and the most that there were. */
  inProgress = 0;
  most = 0;
  /** When calls arrived (ms). */
  readonly arrivals: number[] = [];
  private keys = 0;

  private constructor(
    readonly database: TestDatabase,
    readonly provider: RawProvider,
    readonly all: Replica[],
    private readonly settings: Record<string, string>,
  ) {
    provider.script = async ({ body, socket }) => {
      await body.catch(() => {});
      this.arrivals.push(performance.now());
      this.most = Math.max(this.most, ++this.inProgress);
      const { output, ms } = this.call();
      await timePasses(ms, 'the call');
      this.inProgress--;
      socket.write(answer('200 OK', JSON_TYPE, usageResponse({ input: 100, output })));
    };
  }

  /** Their model `m` costs 20 USD for a million output tokens. */
  static async start(count: number): Promise<Replicas> {
    const database = await createDatabase();
    const provider = await RawProvider.start(() => {});
    const settings = {
      DATABASE_URL: database.url,
      PROVIDER_URL: provider.url,
      ADMIN_TOKEN,
      MASTER_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'fatal',
    };
    const replicas = new Replicas(database, provider, [], settings);
    for (let i = 0; i < count; i++) await replicas.add(await Workplace.make());
    await replicas.admin('POST', '/prices', { catalog: 'default', model: 'm', input: '0', output: '20' });
    return replicas;
  }

  async admin<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.all.at(-1)!.url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** A new key. */
  issue(members: object): Promise<Issued> {
    return this.admin('POST', '/keys', { team: 'default', name: `key-${++this.keys}`, ...members });
  }

  send(url: string, key: string): Promise<Reply> {
    return sendTo(url, key, { model: 'm', max_tokens: 1_000 });
  }

  /**
   * Calls each replica with so many calls in flight.
   *
   * @param goesOn whether to call again after a rejection with this code, or after a call (null)
   */
  async load(
    key: string,
    inFlight: number,
    goesOn: (code: string | null) => boolean = (code) => code === null,
  ): Promise<Outcome> {
    const outcome: Outcome = { forwarded: 0, rejected: new Map(), broken: 0 };
    const loop = async (url: string): Promise<void> => {
      let code: string | null = null;
      while (goesOn(code)) {
        const reply = await this.send(url, key).catch(() => null);
        if (reply === null) {
          outcome.broken++;
          return;
        }
        code = reply.status === 200 ? null : (reply.code ?? `status ${reply.status}`);
        if (code === null) {
          outcome.forwarded++;
          continue;
        }
        outcome.rejected.set(code, (outcome.rejected.get(code) ?? 0) + 1);
        await timePasses(50, 'the pace of a client after a rejection');
      }
    };
    const loops = this.all.flatMap(({ url }) => Array.from({ length: inFlight }, () => loop(url)));
    await Promise.all(loops);
    return outcome;
  }

  /** Makes the database end all connections and reject new ones, or accept them again. */
  async setReachable(isReachable: boolean): Promise<void> {
    const name = new URL(this.database.url).pathname.slice(1);
    const client = new pg.Client({ connectionString: process.env.POSTERN_TEST_SERVER });
    await client.connect();
    await client.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS ${isReachable}`);
    if (!isReachable)
      await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
    await client.end();
  }

  /** Ends a replica as the death of its machine would. */
  async kill(index: number): Promise<void> {
    await this.all[index]!.gateway.process.kill();
  }

  /** Starts one again in the folder of one that was killed. */
  async restart(index: number): Promise<void> {
    const [{ workplace }] = this.all.splice(index, 1) as [Replica];
    await this.add(workplace);
  }

  /** Starts one again that was killed, in its folder and place. */
  async startAgain(index: number): Promise<void> {
    const replica = this.all[index]!;
    replica.gateway = replica.workplace.gateway(this.settings);
    replica.url = await replica.gateway.ready();
  }

  /** The sum of the charges of a key in the log, and what its only budget says was spent, in billionths of a dollar. */
  async books(keyId: string): Promise<{ charged: bigint; spent: bigint; held: bigint }> {
    const [row] = await this.database.query<{ charged: string; spent: string; held: string }>(
      `SELECT (SELECT (COALESCE(sum(charge_usd), 0) * 1000000000)::bigint::text FROM request_log WHERE key_id = $1) AS charged,
              COALESCE(sum(spent), 0)::text AS spent, COALESCE(sum(held), 0)::text AS held
       FROM limit_meter JOIN limit_rule r ON r.id = rule_id WHERE r.scope_id = $1 AND r.resource = 'usd'`,
      [keyId],
    );
    return { charged: BigInt(row!.charged), spent: BigInt(row!.spent), held: BigInt(row!.held) };
  }

  /** The books once every row is written. */
  async settledBooks(keyId: string): Promise<{ charged: bigint; spent: bigint }> {
    return eventually(async () => {
      const { charged, spent, held } = await this.books(keyId);
      return held === 0n && { charged, spent };
    });
  }

  async stop(): Promise<void> {
    for (const { workplace } of this.all) await workplace.remove();
    await this.provider.stop();
    await this.database.drop();
  }

  private async add(workplace: Workplace): Promise<void> {
    const gateway = workplace.gateway(this.settings);
    this.all.push({ workplace, gateway, url: await gateway.ready() });
  }
}
