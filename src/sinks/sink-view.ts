import type { SinkKind } from './sink.entity.js';
import type { SinkView } from './sinks.schema.js';

/** A sink that is further behind has lagged for long: it is reported as degraded and announced. */
export const LAGGING_SECONDS = 300;
/** A sink that is further behind is shown as sending. */
const BEHIND_SECONDS = 10;

export interface SinkRow {
  id: string;
  name: string;
  kind: SinkKind;
  shown_url: string;
  target: string | null;
  sealed: Buffer;
  enabled: boolean;
  recorded_until: Date;
  lag_seconds: number;
  rows_sent: string;
  sent_at: Date | null;
  failing_since: Date | null;
  last_error: string | null;
  last_error_at: Date | null;
  version: number;
  created_at: Date;
  updated_at: Date;
}

/** The lag is that of the oldest row that the sink may not have: its cursor follows the clock while there are no rows. */
export const SELECT_SINKS = `
  SELECT id, name, kind, shown_url, target, sealed, enabled, recorded_until, rows_sent, sent_at, failing_since, last_error,
    last_error_at, version, created_at, updated_at,
    GREATEST(extract(epoch FROM clock_timestamp() - CASE
      WHEN recorded_until > clock_timestamp() - interval '1 day' THEN recorded_until
      ELSE GREATEST(recorded_until, LEAST(created_at, (SELECT min(started_at) FROM request_log))) END), 0)::float8 AS lag_seconds
  FROM sink`;

/** Lists each field, so that a new column is not shown by accident. */
export function sinkView(row: SinkRow, isReadable: boolean): SinkView {
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    url: row.shown_url,
    target: row.target,
    secret_state: isReadable ? 'sealed' : 'unreadable',
    enabled: row.enabled,
    state: stateOf(row),
    recorded_until: row.recorded_until.toISOString(),
    lag_seconds: Math.round(row.lag_seconds * 10) / 10,
    rows_sent: Number(row.rows_sent),
    sent_at: row.sent_at?.toISOString() ?? null,
    failing_since: row.failing_since?.toISOString() ?? null,
    last_error: row.last_error,
    last_error_at: row.last_error_at?.toISOString() ?? null,
    version: row.version,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  };
}

function stateOf({ enabled, failing_since: failing, lag_seconds: lag }: SinkRow): SinkView['state'] {
  if (!enabled) return 'paused';
  if (failing !== null) return 'failing';
  return lag > BEHIND_SECONDS ? 'sending' : 'current';
}

/** What the audit log records of a sink. */
export function settingsOf({ id, name, kind, url, target, enabled }: SinkView) {
  return { id, name, kind, url, target, enabled };
}
