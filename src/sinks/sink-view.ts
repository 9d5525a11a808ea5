import type { Sink } from './sink.entity.js';
import type { SinkView } from './sinks.schema.js';

/** A sink that is further behind has lagged for long: it is reported as degraded and announced. */
export const LAGGING_SECONDS = 300;
/** A sink that is further behind is shown as sending. */
const BEHIND_SECONDS = 10;

/** Lists each field, so that a new column is not shown by accident. */
export function sinkView(row: Sink, isReadable: boolean): SinkView {
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    url: row.shownUrl,
    target: row.target,
    secret_state: isReadable ? 'sealed' : 'unreadable',
    enabled: row.enabled,
    state: stateOf(row),
    recorded_until: row.recordedUntil.toISOString(),
    lag_seconds: Math.round(row.lagSeconds * 10) / 10,
    rows_sent: Number(row.rowsSent),
    sent_at: row.sentAt?.toISOString() ?? null,
    failing_since: row.failingSince?.toISOString() ?? null,
    last_error: row.lastError,
    last_error_at: row.lastErrorAt?.toISOString() ?? null,
    version: row.version,
    created_at: row.createdAt.toISOString(),
    updated_at: row.updatedAt.toISOString(),
  };
}

function stateOf({ enabled, failingSince: failing, lagSeconds: lag }: Sink): SinkView['state'] {
  if (!enabled) return 'paused';
  if (failing !== null) return 'failing';
  return lag > BEHIND_SECONDS ? 'sending' : 'current';
}

/** What the audit log records of a sink. */
export function settingsOf({ id, name, kind, shownUrl: url, target, enabled }: Sink) {
  return { id, name, kind, url, target, enabled };
}
