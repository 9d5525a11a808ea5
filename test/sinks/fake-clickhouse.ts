import type { IncomingMessage, ServerResponse } from 'node:http';
import { CLICKHOUSE_COLUMNS } from '../../src/sinks/clickhouse-table.js';
import { LoopbackServer } from '../support/loopback-server.js';

type Row = Record<string, unknown> & { id: string };

export interface Insert {
  token: string;
  query: string;
  /** As it was sent. */
  body: string;
  rows: Row[];
}

/** Responds to an insert; what it does not store is lost. */
export type Behaviour = (insert: Insert, res: ServerResponse, store: () => void) => void;

const SUMMARY = { 'x-clickhouse-summary': '{"written_rows":"0"}' };
const accept: Behaviour = (_, res, store) => {
  store();
  res.writeHead(200, SUMMARY).end();
};

/** As ClickHouse reports an error of a query. */
export const error =
  (code: number, type: string, text: string): Behaviour =>
  (_, res) =>
    void res
      .writeHead(500, { 'x-clickhouse-exception-code': String(code) })
      .end(`Code: ${code}. DB::Exception: ${text}. (${type}) (version 26.1.1.1)\n`);

/** The HTTP interface of ClickHouse, as far as a sink uses it, with one table that drops inserts whose token it has. */
export class FakeClickHouse extends LoopbackServer {
  /** Everything that arrived. */
  readonly inserts: Insert[] = [];
  /** What the table has, each version of a row as often as it was stored. */
  readonly stored: Row[] = [];
  behave: Behaviour = accept;
  private readonly tokens = new Set<string>();

  accept(): void {
    this.behave = accept;
  }

  get url(): string {
    return this.origin;
  }

  get ids(): string[] {
    return this.stored.map(({ id }) => id).sort();
  }

  protected override respond(req: IncomingMessage, body: string, res: ServerResponse): void {
    const query = new URL(req.url!, this.origin).searchParams;
    const statement = query.get('query');
    if (statement === null) {
      const data = CLICKHOUSE_COLUMNS.map(([name]) => ({ name }));
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
      return;
    }
    const token = query.get('insert_deduplication_token')!;
    const [, list] = /^INSERT INTO postern\.request_log \(([^)]+)\) FORMAT JSONCompactEachRow$/.exec(
      statement,
    )!;
    const columns = list!.split(', ');
    const rows = body.split('\n').map((line) => {
      const values = JSON.parse(line) as unknown[];
      if (values.length !== columns.length) throw new Error('a line has other columns than the statement');
      return Object.fromEntries(columns.map((name, at) => [name, values[at]])) as Row;
    });
    const insert = { token, query: statement, body, rows };
    this.inserts.push(insert);
    this.behave(insert, res, () => {
      if (this.tokens.has(token)) return;
      this.tokens.add(token);
      this.stored.push(...rows);
    });
  }
}
