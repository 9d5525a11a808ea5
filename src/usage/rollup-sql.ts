import { type Measure, MEASURES } from './measures.js';

const ENTRIES = Object.entries<Measure>(MEASURES);
const NAMES = ENTRIES.map(([name]) => name).join(', ');
/** Start of the half hour of a call. */
const SLOT = `date_bin('30 minutes', started_at, 'epoch')`;
/** Of `usage_slot`, in the order of slotsOfRows(). */
export const SLOT_COLUMNS = `slot, team_id, key_id, provider, model, ${NAMES}`;
const INSERT = `INSERT INTO usage_slot (${SLOT_COLUMNS})`;

/** The sums of rows of the log, as rows of `usage_slot`. */
export function slotsOfRows(where: string, from = 'request_log'): string {
  return `
    SELECT ${SLOT} AS slot, team_id, key_id, provider, model,
           ${ENTRIES.map(([name, { ofRows }]) => `${ofRows} AS ${name}`).join(', ')}
    FROM ${from} WHERE ${where}
    GROUP BY 1, 2, 3, 4, 5`;
}

/** Matches rows that are not in `usage_slot` yet. */
export const IS_NEW = 'recorded_at > (SELECT cursor FROM usage_rollup) AND repaired_at IS NULL';

/** Locks the cursor for the rest of the transaction; no row if another process has locked it. */
export const CURSOR = 'SELECT cursor FROM usage_rollup FOR UPDATE SKIP LOCKED';
export const MOVE_CURSOR = 'UPDATE usage_rollup SET cursor = $1';

/** $1, $2: a range of `recorded_at`, here and below, without its start. */
export const FIRST_ROW =
  'SELECT min(recorded_at) AS first FROM request_log WHERE recorded_at > $1 AND recorded_at <= $2';

/** Adds the rows of a range. What a row that was changed had added before is put right by REPAIRED. */
export const ADD_NEW_ROWS = `
  ${INSERT}
  ${slotsOfRows('recorded_at > $1 AND recorded_at <= $2')}
  ON CONFLICT (slot, key_id, provider, model) DO UPDATE SET
    ${ENTRIES.map(([name, { add }]) => `${name} = ${add(`usage_slot.${name}`, `EXCLUDED.${name}`)}`).join(',\n    ')}`;

/** The half hours and keys whose rows were changed. Their sums are computed again, from the rows. */
export const REPAIRED = `
  SELECT DISTINCT ${SLOT} AS slot, key_id FROM request_log
  WHERE recorded_at > $1 AND recorded_at <= $2 AND repaired_at IS NOT NULL`;

/** The half hours and keys of yesterday for which the log has other counts than the sums. $1: the cursor. */
export const DIFFERENT = `
  WITH day AS (SELECT date_trunc('day', now(), 'UTC') - interval '1 day' AS start, date_trunc('day', now(), 'UTC') AS end)
  SELECT slot, key_id FROM (
    SELECT ${SLOT} AS slot, key_id, count(*) AS calls FROM request_log, day
    WHERE started_at >= day.start AND started_at < day.end AND recorded_at <= $1
    GROUP BY 1, 2) AS log
  FULL JOIN (
    SELECT slot, key_id, sum(calls) AS calls FROM usage_slot, day WHERE slot >= day.start AND slot < day.end
    GROUP BY 1, 2) AS sums USING (slot, key_id)
  WHERE log.calls IS DISTINCT FROM sums.calls`;

/** $1, $2: half hours and their keys. */
export const CLEAR = `
  DELETE FROM usage_slot u USING unnest($1::timestamptz[], $2::uuid[]) AS d (start, key)
  WHERE u.slot = d.start AND u.key_id = d.key`;

/** $3: the cursor. $4, $5: all half hours lie between these, so that Postgres skips other days. */
export const FILL = `
  ${INSERT}
  ${slotsOfRows(
    `key_id = d.key AND started_at >= d.start AND started_at < d.start + interval '30 minutes'
     AND started_at >= $4 AND started_at <= $5 AND recorded_at <= $3`,
    'request_log, unnest($1::timestamptz[], $2::uuid[]) AS d (start, key)',
  )}`;

/** $1: days. */
export const DELETE_OLD = `DELETE FROM usage_slot WHERE slot < now() - make_interval(days => $1)`;

/** Are all rows of this partition in the sums? */
export const isAdded = (table: string): string =>
  `SELECT NOT EXISTS (SELECT FROM ${table} WHERE recorded_at > (SELECT cursor FROM usage_rollup)) AS added`;
