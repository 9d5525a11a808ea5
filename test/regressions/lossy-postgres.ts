import pg from 'pg';
import type { TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { LogCluster } from '../support/log-cluster.js';

/** A Postgres that loses what it had acknowledged, as an asynchronous standby has that is promoted. */
export class LossyPostgres {
  readonly database: TestDatabase;

  private constructor(private readonly cluster: LogCluster) {
    this.database = {
      url: cluster.url,
      query: (text, values) => cluster.query(text, values),
      find: (text, values) => eventually(async () => (await cluster.query(text, values))[0] as never),
      drop: () => cluster.remove(),
    };
  }

  static async start(): Promise<LossyPostgres> {
    return new LossyPostgres(await LogCluster.start());
  }

  /**
   * Ends all connections, changes what is stored, and starts again as a new server: no gateway sees anything in between.
   *
   * @param change what is as it was before
   */
  async lose(change: (client: pg.Client) => Promise<void>): Promise<void> {
    const client = await this.connect();
    await this.accept(false);
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    await change(client);
    await client.end();
    await this.restart();
    await this.accept(true);
  }

  async restart(): Promise<void> {
    await this.cluster.stop();
    await this.cluster.begin();
  }

  private async connect(name?: string): Promise<pg.Client> {
    const url = new URL(this.cluster.url);
    if (name !== undefined) url.pathname = `/${name}`;
    const client = new pg.Client({ connectionString: url.href });
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  private async accept(isAccepting: boolean): Promise<void> {
    const client = await this.connect('template1');
    const name = new URL(this.cluster.url).pathname.slice(1);
    await client.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS ${isAccepting}`);
    await client.end();
  }
}
