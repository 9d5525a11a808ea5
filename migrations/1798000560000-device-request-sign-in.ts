import type { MigrationInterface, QueryRunner } from 'typeorm';

/** A sign-in that is deleted finds its requests, which go with it. */
export class DeviceRequestSignIn1798000560000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE INDEX device_request_sign_in_idx ON device_request (sign_in_id) WHERE sign_in_id IS NOT NULL`);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP INDEX device_request_sign_in_idx');
  }
}
