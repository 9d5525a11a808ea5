import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The response cache of a key. Calls with the outcome `cached` are no errors, and have no tokens of their own. */
export class ResponseCache1796200011000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE gateway_key ADD cache jsonb;
      COMMENT ON COLUMN gateway_key.cache IS
        'The response cache: its ttl_seconds, and with whom it is shared; null: none.';
      CREATE TRIGGER gateway_key_cache_changed AFTER UPDATE OF cache ON gateway_key
        FOR EACH ROW EXECUTE FUNCTION count_key_change();
    `);
    await replaceInViews(
      queryRunner,
      `'replayed'::text, 'client_aborted'`,
      `'replayed'::text, 'cached'::text, 'client_aborted'`,
    );
    await replaceInViews(
      queryRunner,
      `<> 'replayed'::text`,
      `<> ALL (ARRAY['replayed'::text, 'cached'::text])`,
    );
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await replaceInViews(
      queryRunner,
      `'replayed'::text, 'cached'::text, 'client_aborted'`,
      `'replayed'::text, 'client_aborted'`,
    );
    await replaceInViews(
      queryRunner,
      `<> ALL (ARRAY['replayed'::text, 'cached'::text])`,
      `<> 'replayed'::text`,
    );
    await queryRunner.query(`
      DROP TRIGGER gateway_key_cache_changed ON gateway_key;
      ALTER TABLE gateway_key DROP cache;
    `);
  }
}

/** Replaces text in every view that contains it. @throws Error if none does */
async function replaceInViews(queryRunner: QueryRunner, from: string, to: string): Promise<void> {
  const views = (await queryRunner.query(
    `SELECT viewname AS name, definition FROM pg_views
     WHERE schemaname = current_schema() AND position($1 IN definition) > 0`,
    [from],
  )) as { name: string; definition: string }[];
  if (views.length === 0) throw new Error(`no view contains: ${from}`);
  for (const { name, definition } of views)
    await queryRunner.query(`CREATE OR REPLACE VIEW ${name} AS ${definition.replaceAll(from, to)}`);
}
