import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keeps replicas of an earlier version, which know no `usage_final`, from setting the cost of a call that is not known. Only an
 * UPDATE of the cost calls it, and only for such a row: of a WebSocket, the cost is that of the responses that ended. Waits
 * for the writers of the log once, and is instant then.
 */
export class UnknownCostOfOlderVersions1798000300001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE FUNCTION request_log_unknown_cost() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        NEW.cost_usd := NULL;
        NEW.price_id := NULL;
        RETURN NEW;
      END $$;
      CREATE TRIGGER unknown_cost BEFORE UPDATE OF cost_usd ON request_log FOR EACH ROW
        WHEN (NEW.usage_final = false AND NEW.cost_usd IS NOT NULL AND NEW.status IS DISTINCT FROM 101)
        EXECUTE FUNCTION request_log_unknown_cost();`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER unknown_cost ON request_log;
      DROP FUNCTION request_log_unknown_cost();`);
  }
}
