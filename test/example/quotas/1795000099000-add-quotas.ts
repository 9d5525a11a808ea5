import type { MigrationInterface, QueryRunner } from 'typeorm';

export class AddQuotas1795000099000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      CREATE TABLE quota (
        team_id uuid CONSTRAINT quota_pkey PRIMARY KEY CONSTRAINT quota_team_id_fkey REFERENCES team (id),
        tokens_per_day int NOT NULL
      );
      COMMENT ON TABLE quota IS 'How many tokens a team may use a day.';
    `);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query('DROP TABLE quota');
  }
}
