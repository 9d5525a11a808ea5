/** A place in the order (recorded_at, id), in which readers of the whole log take its rows. */
export interface Place {
  recordedAt: Date;
  id: string;
}

/** Comes before and after every ID. */
export const FIRST_ID = '00000000-0000-0000-0000-000000000000';
export const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Rows after the place ($1, $2), up to the place ($3, $4). The plain comparisons are for the index. */
export const IN_RANGE =
  'recorded_at >= $1 AND recorded_at <= $3 AND (recorded_at, id) > ($1, $2) AND (recorded_at, id) <= ($3, $4)';

/**
 * SQL: the age in seconds of the oldest row that a reader may not have. Its cursor follows the clock while there are no rows.
 *
 * @param reader a row with `recorded_until`, the time of its cursor, and `created_at`
 */
export const lagSeconds = (reader: string) => `
  GREATEST(extract(epoch FROM clock_timestamp() - CASE
    WHEN ${reader}.recorded_until > clock_timestamp() - interval '1 day' THEN ${reader}.recorded_until
    ELSE GREATEST(${reader}.recorded_until,
      LEAST(${reader}.created_at, (SELECT min(started_at) FROM request_log))) END), 0)::float8`;
