import { IS_UNKNOWN_SQL, LACKS_COST_SQL } from '../request-log/row-cost.js';
import { type Measure, MEASURES } from './measures.js';

const ENTRIES = Object.entries<Measure>(MEASURES);
const NAMES = ENTRIES.map(([name]) => name).join(', ');
/** Length of a slot. */
export const SLOT_MS = 1_800_000;
const HALF_HOUR = `interval '30 minutes'`;
/** Start of the half hour of a call. */
const SLOT = `date_bin(${HALF_HOUR}, started_at, 'epoch')`;
/** What `usage_slot` has of a half hour. */
export const SUM_COLUMNS = `team_id, key_id, provider, model, ${NAMES}`;
/** Of `usage_slot`, in the order of slotsOfRows(). */
export const SLOT_COLUMNS = `slot, ${SUM_COLUMNS}`;

/** Adds what a SELECT of SLOT_COLUMNS returns to what there is. */
function addTo(table: string, select: string): string {
  return `
    INSERT INTO ${table} (${SLOT_COLUMNS}) ${select}
    ON CONFLICT (slot, key_id, provider, model) DO UPDATE SET
      ${ENTRIES.map(([name, { add }]) => `${name} = ${add(`${table}.${name}`, `EXCLUDED.${name}`)}`).join(',\n      ')}`;
}

/** Half-hourly sums added up by UTC day, as rows of `usage_day`. */
function daysOfSlots(from: string): string {
  return `
    SELECT date_trunc('day', s.slot, 'UTC'), s.team_id, s.key_id, s.provider, s.model,
           ${ENTRIES.map(([name, { ofSlots }]) => ofSlots(`s.${name}`)).join(', ')}
    FROM ${from} GROUP BY 1, 2, 3, 4, 5`;
}

/** The sums of rows of the log, as rows of `usage_slot`. @param length of a slot */
export function slotsOfRows(where: string, from = 'request_log', length = HALF_HOUR): string {
  return `
    SELECT date_bin(${length}, started_at, 'epoch') AS slot, team_id, key_id, provider, model,
           ${ENTRIES.map(([name, { ofRows }]) => `${ofRows} AS ${name}`).join(', ')}
    FROM ${from} WHERE ${where}
    GROUP BY 1, 2, 3, 4, 5`;
}

/** Matches rows recorded after this time and not only written again. @param cursor of the roll-up: those not in the sums */
export const isNew = (cursor: string): string => `recorded_at > ${cursor} AND repaired_at IS NULL`;

export const CURSOR = 'SELECT cursor FROM usage_rollup';
/**
 * Locks the cursor for the rest of the transaction; no row if another process has locked it. `complete` is behind it if a
 * process of an earlier version, which leaves out unknown costs, has moved it.
 */
export const LOCK_CURSOR =
  'SELECT cursor, LEAST(complete_cursor, cursor) AS complete FROM usage_rollup FOR UPDATE SKIP LOCKED';
export const MOVE_CURSOR = 'UPDATE usage_rollup SET cursor = $1, complete_cursor = $1';
export const MOVE_COMPLETE = 'UPDATE usage_rollup SET complete_cursor = $1';

/** When the first call of the log began: no row was recorded before. An index has it; it has no `min(recorded_at)`. */
export const FIRST_START = 'SELECT min(started_at) AS first FROM request_log';

/** $1, $2, here and below: a range of `recorded_at`, without its start. Adds its rows, without those that were changed. */
export const ADD_NEW_ROWS = `
  WITH added AS (${slotsOfRows(`${isNew('$1')} AND recorded_at <= $2`)}),
       slots AS (${addTo('usage_slot', `SELECT ${SLOT_COLUMNS} FROM added`)})
  ${addTo('usage_day', daysOfSlots('added AS s'))}`;

/** The half hours and keys whose rows were changed. Their sums are computed again, from the rows. */
export const REPAIRED = `
  SELECT DISTINCT ${SLOT} AS slot, key_id FROM request_log
  WHERE recorded_at > $1 AND recorded_at <= $2 AND repaired_at IS NOT NULL
  ORDER BY 1`;

/** The half hours and keys that a process of an earlier version has added or computed again, with unknown costs left out. */
export const INCOMPLETE = `
  SELECT DISTINCT ${SLOT} AS slot, key_id FROM request_log
  WHERE recorded_at > $1 AND recorded_at <= $2 AND (${IS_UNKNOWN_SQL} OR (${LACKS_COST_SQL}) OR repaired_at IS NOT NULL)
  ORDER BY 1`;

/** The half hours and keys of yesterday for which the log has other counts than the sums. $1: the cursor. */
export const DIFFERENT = `
  WITH day AS (SELECT date_trunc('day', now(), 'UTC') - interval '1 day' AS start, date_trunc('day', now(), 'UTC') AS end)
  SELECT slot, key_id FROM (
    SELECT ${SLOT} AS slot, key_id, count(*) AS rows, count(*) FILTER (WHERE ${IS_UNKNOWN_SQL}) AS unknown
    FROM request_log, day WHERE started_at >= day.start AND started_at < day.end AND recorded_at <= $1
    GROUP BY 1, 2) AS log
  FULL JOIN (
    SELECT slot, key_id, sum(calls + retried_attempts) AS rows, sum(unknown_calls) AS unknown
    FROM usage_slot, day WHERE slot >= day.start AND slot < day.end
    GROUP BY 1, 2) AS sums USING (slot, key_id)
  WHERE (log.rows, log.unknown) IS DISTINCT FROM (sums.rows, sums.unknown)`;

/** Rows of the log up to the cursor $3 of the half hour and key `d`. $4, $5: see FILL. */
const ROWS_OF = `key_id = d.key AND started_at >= d.start AND started_at < d.start + interval '30 minutes'
  AND started_at >= $4 AND started_at <= $5 AND recorded_at <= $3`;

/**
 * $1, $2: half hours and their keys. Those of which the log has all rows that were added up. Of a day that was dropped it has
 * only what was written since: these sums stay as they are.
 */
export const COMPLETE = `
  SELECT d.start AS slot, d.key AS key_id FROM unnest($1::timestamptz[], $2::uuid[]) AS d (start, key)
  WHERE (SELECT count(*) FROM request_log WHERE ${ROWS_OF}) >=
    (SELECT COALESCE(sum(calls + retried_attempts), 0) FROM usage_slot WHERE slot = d.start AND key_id = d.key)`;

/** $1, $2: half hours and their keys. */
export const CLEAR = `
  DELETE FROM usage_slot u USING unnest($1::timestamptz[], $2::uuid[]) AS d (start, key)
  WHERE u.slot = d.start AND u.key_id = d.key`;

/** $3: the cursor. $4, $5: all half hours lie between these, so that Postgres skips other days. */
export const FILL = `
  INSERT INTO usage_slot (${SLOT_COLUMNS})
  ${slotsOfRows(ROWS_OF, 'request_log, unnest($1::timestamptz[], $2::uuid[]) AS d (start, key)')}`;

const DAYS_OF_KEYS = `
  (SELECT DISTINCT date_trunc('day', start, 'UTC') AS day, key FROM unnest($1::timestamptz[], $2::uuid[]) AS k (start, key))`;

/** $1, $2: half hours and their keys, the days of which are added up again. */
export const CLEAR_DAYS = `
  DELETE FROM usage_day u USING ${DAYS_OF_KEYS} AS d WHERE u.slot = d.day AND u.key_id = d.key`;

/** $3, $4: all half hours of these days lie between these. */
export const FILL_DAYS = `
  INSERT INTO usage_day (${SLOT_COLUMNS})
  ${daysOfSlots(
    `usage_slot AS s JOIN ${DAYS_OF_KEYS} AS d ON s.key_id = d.key AND date_trunc('day', s.slot, 'UTC') = d.day
     WHERE s.slot >= $3 AND s.slot < $4`,
  )}`;

/** `interval '2 days'` has 47 hours or 49 where the session's time zone changes its clocks. */
const LAST_DAYS = `slot >= date_trunc('day', now(), 'UTC') - interval '48 hours' AND slot < date_trunc('day', now(), 'UTC')`;

/** Adds up the last two days again: during an upgrade, a process of an earlier version may have added their half hours. */
export const CLEAR_LAST_DAYS = `DELETE FROM usage_day WHERE ${LAST_DAYS}`;
export const FILL_LAST_DAYS = `
  INSERT INTO usage_day (${SLOT_COLUMNS})
  ${daysOfSlots(`usage_slot AS s WHERE ${LAST_DAYS}`)}`;

/** $1: days. Whole UTC days, as partitions are. */
export const deleteOld = (table: 'usage_slot' | 'usage_day'): string =>
  `DELETE FROM ${table} WHERE slot < date_trunc('day', now(), 'UTC') - make_interval(days => $1 + 1)`;

/** Are all rows of this partition in the sums? */
export const isAdded = (table: string): string =>
  `SELECT NOT EXISTS (SELECT FROM ${table} WHERE recorded_at > (SELECT cursor FROM usage_rollup)) AS added`;
