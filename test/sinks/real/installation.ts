import {
  type ClickHouseClient,
  ClickHouseLogLevel,
  type ClickHouseSettings,
  createClient,
} from '@clickhouse/client';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { Readable } from 'node:stream';
import { clickhouseDdl } from '../../../src/sinks/clickhouse-table.js';
import type { SinkView } from '../../../src/sinks/sinks.schema.js';
import { eventually } from '../../support/eventually.js';
import { LogCluster } from '../../support/log-cluster.js';
import type { GatewayProcess } from '../../support/process.js';
import { Workplace } from '../../support/workplace.js';
import { installServers, SinkServer } from './servers.js';

const ADMIN_TOKEN = 'test-admin-token-0123456789';
export const SUBJECT = 'postern.requests';
export const STREAM = 'POSTERN';
export const TABLE = 'postern.request_log';
const HOURS = 3_600 * 1_000_000_000;

/** A gateway with a Postgres of its own, a ClickHouse and a NATS server. Each of them can be killed. */
export class Installation {
  gateway!: GatewayProcess;
  private url = '';

  private constructor(
    readonly cluster: LogCluster,
    readonly clickhouse: SinkServer,
    readonly nats: SinkServer,
    private readonly workplace: Workplace,
    private readonly client: ClickHouseClient,
  ) {}

  static async start(): Promise<Installation> {
    const { nats: program, python } = installServers();
    const [clickhouse, nats] = await Promise.all([SinkServer.clickhouse(python), SinkServer.nats(program)]);
    const client = createClient({
      url: `http://127.0.0.1:${clickhouse.port}`,
      request_timeout: 600_000,
      // Each error is thrown.
      log: { level: ClickHouseLogLevel.OFF },
    });
    const installation = new Installation(
      ...([await LogCluster.start(), clickhouse, nats, await Workplace.make(), client] as const),
    );
    await installation.startGateway();
    return installation;
  }

  async remove(): Promise<void> {
    await this.client.close();
    await this.workplace.remove();
    await this.clickhouse.remove();
    await this.nats.remove();
    await this.cluster.remove();
  }

  async startGateway(): Promise<void> {
    this.gateway = this.workplace.gateway({
      DATABASE_URL: this.cluster.url,
      ADMIN_TOKEN,
      CONSOLE: 'off',
      REQUEST_LOG_ARCHIVE: 'warehouse',
    });
    this.url = await this.gateway.ready();
    await this.ready();
  }

  async kill(target: 'gateway' | 'clickhouse' | 'nats' | 'postgres'): Promise<void> {
    if (target === 'gateway') {
      await this.gateway.process.kill();
      await this.startGateway();
    } else if (target === 'postgres') {
      await this.cluster.signal('SIGKILL');
      await this.cluster.begin();
      await this.ready();
    } else await this[target].killed();
  }

  async admin<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(`${this.url}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** By name: the stream, then the warehouse. */
  async sinks(): Promise<SinkView[]> {
    return (await this.admin<{ data: SinkView[] }>('GET', '/sinks')).data;
  }

  async addSinks(): Promise<void> {
    const url = {
      clickhouse: `http://127.0.0.1:${this.clickhouse.port}`,
      nats: `nats://127.0.0.1:${this.nats.port}`,
    };
    await this.admin('POST', '/sinks', {
      name: 'warehouse',
      kind: 'clickhouse',
      url: url.clickhouse,
      target: TABLE,
    });
    await this.admin('POST', '/sinks', { name: 'stream', kind: 'jetstream', url: url.nats, target: SUBJECT });
  }

  /** Waits until every sink that is not paused has all rows that are in the log now. */
  async allSent(boundMs?: number): Promise<void> {
    const [{ now }] = (await this.cluster.query<{ now: Date }>('SELECT clock_timestamp() AS now')) as [
      { now: Date },
    ];
    await eventually(
      async () =>
        (await this.sinks().catch(() => null))?.every(
          ({ state, recorded_until: until }) =>
            state === 'paused' || (state === 'current' && new Date(until) > now),
        ),
      boundMs,
    );
  }

  async createTable(): Promise<void> {
    await this.command('CREATE DATABASE postern');
    for (const statement of clickhouseDdl({ table: TABLE }).split(';').slice(0, -1))
      await this.command(statement);
  }

  async createStream(hours: number): Promise<void> {
    await this.onStream(async (connection) => {
      const manager = await jetstreamManager(connection);
      await manager.streams.add({ name: STREAM, subjects: [SUBJECT], duplicate_window: hours * HOURS });
    });
  }

  async changeDuplicateWindow(hours: number): Promise<void> {
    await this.onStream(async (connection) => {
      const manager = await jetstreamManager(connection);
      await manager.streams.update(STREAM, { duplicate_window: hours * HOURS });
    });
  }

  async query<T>(text: string): Promise<T[]> {
    return (await (await this.client.query({ query: text, format: 'JSON' })).json<T>()).data;
  }

  async command(query: string): Promise<void> {
    await this.client.command({ query });
  }

  async insert(query: string, body: string): Promise<void> {
    const settings: ClickHouseSettings = {
      date_time_input_format: 'best_effort',
      input_format_json_read_objects_as_strings: 1,
      input_format_skip_unknown_fields: 1,
    };
    const values = Readable.from([Buffer.from(body)], { objectMode: false });
    const { stream } = await this.client.exec({ query, values, clickhouse_settings: settings });
    for await (const _ of stream);
  }

  async onStream<T>(work: (connection: NatsConnection) => Promise<T>): Promise<T> {
    const connection = await connect({ servers: `127.0.0.1:${this.nats.port}` });
    try {
      return await work(connection);
    } finally {
      await connection.close();
    }
  }

  private async ready(): Promise<void> {
    await eventually(async () => (await fetch(`${this.url}/health/ready`).catch(() => null))?.status === 200);
  }
}

/** For the one who runs the test. */
export function print(text: string): void {
  process.stdout.write(`\n${text}\n`);
}
