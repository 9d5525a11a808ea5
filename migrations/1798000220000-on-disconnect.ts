import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Whether the response to a call is read to its end after its client has disconnected. Every replica learns of a change at once. */
export class OnDisconnect1798000220000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE provider ADD COLUMN on_disconnect text NOT NULL DEFAULT 'cancel'
        CONSTRAINT provider_on_disconnect_check CHECK (on_disconnect IN ('cancel', 'finish'));
      COMMENT ON COLUMN provider.on_disconnect IS 'cancel: the call ends with its client; finish: its response is read to the end.';
      ALTER TABLE gateway_key ADD COLUMN on_disconnect text
        CONSTRAINT gateway_key_on_disconnect_check CHECK (on_disconnect IN ('cancel', 'finish'));
      COMMENT ON COLUMN gateway_key.on_disconnect IS
        'cancel: a call ends with its client; finish: its response is read to the end; null: as the provider says.';
      CREATE TRIGGER gateway_key_on_disconnect_changed AFTER UPDATE OF on_disconnect ON gateway_key
        FOR EACH ROW EXECUTE FUNCTION count_key_change();
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP TRIGGER gateway_key_on_disconnect_changed ON gateway_key;
      ALTER TABLE gateway_key DROP COLUMN on_disconnect;
      ALTER TABLE provider DROP COLUMN on_disconnect;
    `);
  }
}
