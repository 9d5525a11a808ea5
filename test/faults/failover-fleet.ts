import { randomBytes } from 'node:crypto';
import { eventually } from '../support/eventually.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import type { GatewayProcess } from '../support/process.js';
import { TcpForwarder } from '../support/tcp-forwarder.js';
import { Workplace } from '../support/workplace.js';
import { admin, FailoverLoad, type Kind } from './failover-load.js';

/** A Postgres of these tests. */
export interface Cluster {
  readonly url: string;
  query<T extends object>(text: string, values?: unknown[]): Promise<T[]>;
  remove(): Promise<void>;
}

export interface Replica {
  workplace: Workplace;
  process: GatewayProcess;
  url: string;
  settings: Record<string, string>;
}

/** Processes of the gateway on one address, behind which the Postgres server changes, and calls of five kinds of keys. */
export class Fleet {
  readonly replicas: Replica[] = [];
  kinds: Kind[] = [];
  private budgetKey = '';
  private names = 0;

  private constructor(
    public cluster: Cluster,
    readonly forwarder: TcpForwarder,
    readonly load: FailoverLoad,
    private readonly settings: Record<string, string>,
  ) {}

  /** @param settingsOf a replica, by its number and the address of Postgres; null: that address */
  static async start(
    cluster: Cluster,
    count: number,
    settingsOf?: (number: number, url: string) => Promise<Record<string, string> | null>,
  ): Promise<Fleet> {
    const forwarder = await TcpForwarder.to(cluster.url);
    await forwarder.open();
    const load = await FailoverLoad.start();
    const fleet = new Fleet(cluster, forwarder, load, {
      DATABASE_URL: forwarder.url,
      PROVIDER_URL: load.provider.url,
      PROVIDER_KEY: 'sk-provider',
      ADMIN_TOKEN,
      MASTER_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'warn',
    });
    for (let i = 0; i < count; i++) {
      const settings = { ...fleet.settings, ...(await settingsOf?.(i, forwarder.url)) };
      const workplace = await Workplace.make();
      const process = workplace.gateway(settings);
      fleet.replicas.push({ workplace, process, url: await process.ready(), settings });
    }
    await fleet.makeKeys();
    return fleet;
  }

  private async makeKeys(): Promise<void> {
    await admin(this.replicas[0]!.url, 'POST', '/prices', {
      catalog: 'default',
      model: 'm',
      input: '0',
      output: '20',
    });
    const budget = await this.issue({ budgets: [{ usd: '1000', period: 'day' }] });
    this.budgetKey = budget.id;
    const expires_at = new Date(Date.now() + 86_400_000).toISOString();
    this.kinds = [
      { name: 'plain', key: (await this.issue({})).key, replays: false },
      { name: 'budget', key: budget.key, replays: false },
      {
        name: 'rate',
        key: (await this.issue({ limits: { requests_per_minute: 100_000 } })).key,
        replays: false,
      },
      { name: 'replay', key: (await this.issue({ idempotency: 'replay' })).key, replays: true },
      { name: 'expiring', key: (await this.issue({ expires_at })).key, replays: false },
    ];
  }

  issue(members: object): Promise<{ id: string; key: string }> {
    const name = `key-${++this.names}`;
    return admin(this.replicas[0]!.url, 'POST', '/keys', { team: 'default', name, ...members });
  }

  get urls(): string[] {
    return this.replicas.map(({ url }) => url);
  }

  /** Starts it again with its DATA_DIR. */
  async restart(replica: Replica): Promise<void> {
    replica.process = replica.workplace.gateway(replica.settings);
    replica.url = await replica.process.ready();
  }

  async moreCalls(count: number): Promise<void> {
    const enough = this.load.arrivals.size + count;
    await eventually(() => this.load.arrivals.size >= enough);
  }

  /** Postgres is another server from now on, on the same address. */
  async lead(next: Cluster): Promise<void> {
    this.forwarder.lead(next.url);
    await this.forwarder.open();
    this.cluster = next;
  }

  /** Until each replica has compared itself with the server that runs. */
  async compared(): Promise<void> {
    await eventually(async () => {
      const { length } = await this.cluster.query(
        `SELECT FROM gateway_run WHERE server = pg_postmaster_start_time() AND at > clock_timestamp() - interval '10 s'`,
      );
      return length >= this.replicas.length;
    });
  }

  /** Rows = calls, no call twice, and ledger = log. */
  async expectWhatHolds(): Promise<void> {
    const { arrivals } = this.load;
    await eventually(async () => {
      const [row] = await this.cluster.query<{ count: number }>(
        'SELECT count(end_user)::int AS count FROM request_log',
      );
      return row!.count >= arrivals.size;
    });
    const rows = await this.cluster.query<{ user: string; count: number; isInterrupted: boolean }>(
      `SELECT end_user AS user, count(*)::int AS count, bool_or(outcome = 'interrupted') AS "isInterrupted"
       FROM request_log WHERE end_user IS NOT NULL GROUP BY 1`,
    );
    const counts = new Map(rows.map(({ user, count }) => [user, count]));
    expect([...arrivals.keys()].filter((user) => counts.get(user) !== 1)).toEqual([]);
    // A replica that was killed has journalled calls that it had not sent yet.
    const ended = rows.filter(({ isInterrupted }) => !isInterrupted).map(({ user }) => user);
    expect(ended.filter((user) => !arrivals.has(user))).toEqual([]);
    expect(Math.max(...counts.values())).toBe(1);
    expect([...arrivals].filter(([, times]) => times > 1)).toEqual([]);
    await this.expectLedgerOf(this.budgetKey);
  }

  async expectLedgerOf(key: string): Promise<void> {
    await eventually(async () => {
      const [books] = await this.cluster.query<{ same: boolean }>(
        `SELECT (SELECT COALESCE(sum(charge_usd), 0) * 1000000000 FROM request_log WHERE key_id = $1)
              = (SELECT COALESCE(sum(m.spent), 0) FROM limit_meter m JOIN limit_rule r ON r.id = m.rule_id
                 WHERE r.scope_id = $1 AND r.resource = 'usd') AS same`,
        [key],
      );
      return books!.same;
    });
  }

  async stop(): Promise<void> {
    for (const { workplace } of this.replicas) await workplace.remove();
    await this.load.provider.stop();
    await this.forwarder.close();
    await this.cluster.remove();
  }
}
