import { Readable } from 'node:stream';
import { type ClickHouseClient, ClickHouseError, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import type { UpstreamConnector } from '../../proxy/upstream/upstream-connector.js';
import { cliCommand } from '../../platform/cli-command.js';
import { CLICKHOUSE_COLUMNS } from '../clickhouse-table.js';
import type { SinkAccess } from '../sink-secrets.service.js';
import { connectionError } from './connection-error.js';
import { connectorAgent } from './connector-agent.js';
import { excerpt, SEND_TIMEOUT, SinkError, type SinkMessage, type SinkSender } from './sink-sender.js';

/** Inserts are synchronous, so that a response means that the rows are stored. */
const INSERT_SETTINGS = {
  async_insert: 0,
  insert_deduplicate: 1,
  insert_distributed_sync: 1,
  wait_end_of_query: 1,
  date_time_input_format: 'best_effort',
  input_format_json_read_objects_as_strings: 1,
  // Rows of a repricing may be from many days.
  max_partitions_per_insert_block: '0',
} as const;

/** Those of a line, in its order. */
const COLUMNS = CLICKHOUSE_COLUMNS.map(([name]) => name).join(', ');
const FIND_COLUMNS = `
  SELECT name FROM system.columns
  WHERE table = {table: String} AND database = if({database: String} = '', currentDatabase(), {database: String})`;

/** Opens a client of a server. @param secret `user:password` */
export function openClickHouse({ url, secret }: SinkAccess, connect: UpstreamConnector): ClickHouseClient {
  const [, username = 'default', password = secret ?? ''] = /^([^:]*):([^]*)$/.exec(secret ?? '') ?? [];
  return createClient({
    url,
    username,
    password,
    application: 'postern',
    request_timeout: SEND_TIMEOUT.ms,
    http_agent: connectorAgent(new URL(url), connect),
    // Errors are thrown; the client's own logger would write them to standard error as well.
    log: { level: ClickHouseLogLevel.OFF },
  });
}

/** Inserts each message into a table. ClickHouse drops one that it has, by its `insert_deduplication_token`. */
export class ClickHouseSender implements SinkSender {
  readonly format = { rows: 20_000, bytes: 32 * 1_024 * 1_024, lines: 'arrays' } as const;

  private constructor(
    private readonly client: ClickHouseClient,
    private readonly table: string,
  ) {}

  /** @throws SinkError if there is no such table, or columns are missing */
  static async open(
    access: SinkAccess,
    table: string,
    connect: UpstreamConnector,
  ): Promise<ClickHouseSender> {
    const sender = new ClickHouseSender(openClickHouse(access, connect), table);
    try {
      await sender.check();
      return sender;
    } catch (error) {
      await sender.close();
      throw clickHouseError(error);
    }
  }

  async send({ id, body }: SinkMessage): Promise<void> {
    try {
      const { stream, response_headers: headers } = await this.client.exec({
        query: `INSERT INTO ${this.table} (${COLUMNS}) FORMAT JSONCompactEachRow`,
        values: Readable.from([Buffer.from(body)], { objectMode: false }),
        clickhouse_settings: { ...INSERT_SETTINGS, insert_deduplication_token: id },
      });
      stream.resume();
      if (headers?.['x-clickhouse-summary'] === undefined) throw notClickHouse();
    } catch (error) {
      throw clickHouseError(error);
    }
  }

  close(): Promise<void> {
    return this.client.close();
  }

  private async check(): Promise<void> {
    const parts = this.table.split('.');
    const table = parts.pop()!;
    const result = await this.client.query({
      query: FIND_COLUMNS,
      query_params: { table, database: parts[0] ?? '' },
      format: 'JSON',
    });
    const { data } = await result.json<{ name: string }>();
    if (!Array.isArray(data)) throw notClickHouse();
    const present = new Set(data.map(({ name }) => name));
    if (present.size === 0) {
      throw new SinkError(
        `There is no table ${this.table}, or its user may not see it. Create it with the output of: ${cliCommand(`sinks ddl clickhouse --table ${this.table}`)}`,
      );
    }
    const missing = CLICKHOUSE_COLUMNS.filter(([name]) => !present.has(name));
    if (missing.length > 0) {
      const added = missing.map(([name, type]) => `ADD COLUMN ${name} ${type}`).join(', ');
      throw new SinkError(`The table ${this.table} lacks columns. Run: ALTER TABLE ${this.table} ${added}`);
    }
  }
}

function notClickHouse(): SinkError {
  return new SinkError(
    'The server does not respond like ClickHouse. Check the URL: it must be that of its HTTP interface.',
  );
}

export function clickHouseError(error: unknown): SinkError {
  if (error instanceof ClickHouseError) {
    const { type = 'error', message } = error;
    if (/AUTHENTICATION|UNKNOWN_USER|WRONG_PASSWORD/.test(type))
      return new SinkError(
        `ClickHouse rejected the user or the password (${type}). Change the secret of the sink: user:password.`,
      );
    return new SinkError(`ClickHouse: ${type}: ${excerpt(message)}`);
  }
  if (error instanceof SyntaxError) return notClickHouse();
  const { message = '' } = (error ?? {}) as { message?: string };
  if (/Timeout error/i.test(message))
    return connectionError(Object.assign(new Error(message), { name: 'TimeoutError' }));
  // The client throws a response that is not an error of ClickHouse as an error with its text.
  if ((error as { code?: unknown } | null)?.code === undefined && !(error instanceof SinkError))
    return (error as Error | null)?.name === 'ForbiddenAddress' ? connectionError(error) : notClickHouse();
  return connectionError(error);
}
