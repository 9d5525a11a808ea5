import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Every replica learns at once that a key may open WebSockets, or no more. */
export class WebsocketChanges1796400020001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TRIGGER gateway_key_websockets_changed AFTER UPDATE OF websockets ON gateway_key
        FOR EACH ROW EXECUTE FUNCTION count_key_change();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TRIGGER gateway_key_websockets_changed ON gateway_key');
  }
}
