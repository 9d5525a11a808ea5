import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What the migrations before have created. Later functions have a file only. */
const NAMES = [
  'admin_session_id',
  'count_change',
  'count_key_change',
  'limit_emit',
  'limit_exchange',
  'limit_forget',
  'limit_lock_meter',
  'limit_meter_alert',
  'limit_rule_raised',
  'limit_sweep',
  'limit_take_holds',
  'limit_take_rates',
  'limit_threshold',
  'limit_window',
  'limit_windows',
  'provider_name_taken',
  'webhook_emit',
];

/** From here on, functions are files in migrations/functions, which are applied after the migrations. */
export class StoredFunctions1798000100000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE stored_function (
        name text CONSTRAINT stored_function_pkey PRIMARY KEY,
        revision int NOT NULL,
        digest text NOT NULL,
        migrated text
      );
      COMMENT ON TABLE stored_function IS 'The files of migrations/functions that were applied.';
      COMMENT ON COLUMN stored_function.revision IS
        'Of the file. A version whose file has a lower one does not replace the function.';
      COMMENT ON COLUMN stored_function.digest IS 'SHA-256 of the file.';
      COMMENT ON COLUMN stored_function.migrated IS
        'The function as the migrations before had made it, for their way back; null for later functions.';
    `);
    await queryRunner.query(
      `INSERT INTO stored_function (name, revision, digest, migrated)
       SELECT proname, 0, '', pg_get_functiondef(oid) FROM pg_proc
       WHERE proname = ANY ($1) AND pg_function_is_visible(oid)`,
      [NAMES],
    );
  }

  /** The migrations before replace text in their functions on their way back. */
  async down(queryRunner: QueryRunner): Promise<void> {
    const rows = (await queryRunner.query(
      'SELECT migrated FROM stored_function WHERE migrated IS NOT NULL ORDER BY name',
    )) as { migrated: string }[];
    for (const { migrated } of rows) await queryRunner.query(migrated);
    const later = (await queryRunner.query(
      'SELECT s.name FROM stored_function s JOIN pg_proc ON proname = s.name AND pg_function_is_visible(oid) WHERE migrated IS NULL',
    )) as { name: string }[];
    for (const { name } of later) await queryRunner.query(`DROP FUNCTION ${name}`);
    await queryRunner.query('DROP TABLE stored_function');
  }
}
