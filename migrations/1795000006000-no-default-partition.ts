import type { MigrationInterface, QueryRunner } from 'typeorm';

const DAY_SECONDS = 86_400;

/**
 * Removes the default partition of the request log, whose rows would have to be moved, under locks, before a day that it
 * holds could be attached. The gateway creates each day before it inserts a row of it.
 */
export class NoDefaultPartition1795000006000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    // The log first, as writers lock it, and with the mode that DETACH needs: a lock that grows can deadlock.
    await queryRunner.query('LOCK TABLE ONLY request_log IN ACCESS EXCLUSIVE MODE');
    const [column] = (await queryRunner.query(COLUMNS)) as [{ names: string | null }];
    // Somebody removed it by hand.
    if (column.names === null) return;
    await queryRunner.query('ALTER TABLE request_log DETACH PARTITION request_log_default');
    for (;;) {
      const [gap] = (await queryRunner.query(FIRST_GAP)) as { from: string; to: string; day: string }[];
      if (gap === undefined) break;
      const table = await freeName(queryRunner, gap.day);
      await queryRunner.query(`
        CREATE TABLE ${table} (LIKE request_log INCLUDING ALL);
        ALTER TABLE request_log ATTACH PARTITION ${table}
          FOR VALUES FROM (to_timestamp(${gap.from})) TO (to_timestamp(${gap.to}))`);
      await queryRunner.query(`
        WITH moved AS (
          DELETE FROM request_log_default
          WHERE started_at >= to_timestamp(${gap.from}) AND started_at < to_timestamp(${gap.to}) RETURNING *)
        INSERT INTO ${table} (${column.names}) SELECT ${column.names} FROM moved`);
    }
    await queryRunner.query('DROP TABLE request_log_default');
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('CREATE TABLE request_log_default PARTITION OF request_log DEFAULT');
  }
}

/** The columns by name: a partition may have them in an order of its own. */
const COLUMNS = `
  SELECT string_agg(quote_ident(attname), ', ') AS names
  FROM pg_inherits JOIN pg_attribute ON attrelid = inhrelid AND attnum > 0 AND NOT attisdropped
  WHERE inhparent = 'request_log'::regclass AND inhrelid = to_regclass('request_log_default')`;

/**
 * The day of the earliest row left, or the part of it that other partitions leave free. Bounds in Unix seconds: no time
 * zone or date style of the session changes them.
 */
const FIRST_GAP = `
  WITH first AS (SELECT min(started_at) AS at FROM request_log_default),
    day AS (SELECT at, date_trunc('day', at, 'UTC') AS start FROM first WHERE at IS NOT NULL),
    bounds AS (
      SELECT substring(bound, 'FROM \\(''([^'']+)''\\)')::timestamptz AS low,
             substring(bound, 'TO \\(''([^'']+)''\\)')::timestamptz AS high
      FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid, pg_get_expr(c.relpartbound, c.oid) AS bound
      WHERE i.inhparent = 'request_log'::regclass)
  SELECT extract(epoch FROM GREATEST(start, (SELECT max(high) FROM bounds WHERE high <= at)))::text AS "from",
         extract(epoch FROM LEAST(start + interval '${DAY_SECONDS} s', (SELECT min(low) FROM bounds WHERE low > at)))::text AS "to",
         to_char(start AT TIME ZONE 'UTC', 'YYYYMMDD') AS day
  FROM day`;

/** A table with the day's name that is not a partition stays where it is. */
async function freeName(queryRunner: QueryRunner, day: string): Promise<string> {
  for (let copy = 0; ; copy++) {
    const name = `request_log_${day}${copy === 0 ? '' : `_${copy}`}`;
    const [found] = (await queryRunner.query('SELECT to_regclass($1) IS NOT NULL AS taken', [name])) as [
      { taken: boolean },
    ];
    if (!found.taken) return name;
  }
}
