import { COLUMN_NAMES, COLUMNS } from '../request-log/columns.js';
import type { Column } from '../request-log/column.js';

const TYPES: Record<Column<unknown>['type'], string> = {
  timestamptz: `DateTime64(3, 'UTC')`,
  uuid: 'UUID',
  text: 'String',
  boolean: 'Bool',
  smallint: 'Int16',
  int: 'Int32',
  bigint: 'Int64',
  // As Postgres writes an array.
  'bigint[]': 'String',
  real: 'Float32',
  numeric: 'Decimal(18, 9)',
  inet: 'String',
  // The text of the object.
  jsonb: 'String',
};
/** Text of which there are few values. */
const FEW_VALUES = /^(provider|method|path|model|outcome|altered)$|_(code|cause|type)$/;
/** As many inserts are remembered, so that a repeated one is dropped. */
const WINDOW = 10_000;

export interface TableOptions {
  table: string;
  /** Name of a cluster: prints replicated tables and one that distributes. */
  cluster?: string;
}

/** The columns of the request log for ClickHouse, each as its definition. */
export const CLICKHOUSE_COLUMNS: readonly (readonly [name: string, type: string])[] = COLUMN_NAMES.map(
  (name) => {
    const { type, nullMeans }: Column<unknown> = COLUMNS[name];
    const plain = nullMeans === undefined ? TYPES[type] : `Nullable(${TYPES[type]})`;
    return [name, type === 'text' && FEW_VALUES.test(name) ? `LowCardinality(${plain})` : plain];
  },
);

/** The statements that create the table of a sink, and a view of it without replaced rows. */
export function clickhouseDdl({ table, cluster }: TableOptions): string {
  const on = cluster === undefined ? '' : ` ON CLUSTER '${cluster}'`;
  const stored = cluster === undefined ? table : `${table}_local`;
  const engine =
    cluster === undefined
      ? 'ReplacingMergeTree(recorded_at)'
      : `ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', recorded_at)`;
  const window =
    cluster === undefined ? 'non_replicated_deduplication_window' : 'replicated_deduplication_window';
  const columns = CLICKHOUSE_COLUMNS.map(([name, type]) => `  ${name} ${type}`).join(',\n');
  const statements = [
    `-- One row for each forwarded call. A row that was updated replaces the older one, by (team_id, key_id, started_at, id).
CREATE TABLE IF NOT EXISTS ${stored}${on} (
${columns}
)
ENGINE = ${engine}
PARTITION BY toYYYYMMDD(started_at)
ORDER BY (team_id, key_id, started_at, id)
SETTINGS ${window} = ${WINDOW};`,
    ...(cluster === undefined
      ? []
      : [
          `-- What the sink names. The same row goes to the same shard each time.
CREATE TABLE IF NOT EXISTS ${table}${on} AS ${stored}
ENGINE = Distributed('${cluster}', ${table.includes('.') ? `'${table.replace('.', `', '`)}` : `currentDatabase(), '${table}`}_local', sipHash64(id));`,
        ]),
    `-- Without rows that were replaced: read this one.
CREATE VIEW IF NOT EXISTS ${table}_exact${on} AS SELECT * FROM ${table} FINAL;`,
  ];
  return `${statements.join('\n\n')}\n`;
}
