import type { MigrationInterface, QueryRunner } from 'typeorm';
import { comment, commentOnRequestLog } from './comments.js';

const COLUMNS = ['error_cause', 'provider_error_type', 'provider_error_code'];
const ABOUT = 'Failed calls by hour, key, provider, status, outcome and error code.';
const ABOUT_ALL =
  'Failed calls by hour, key, provider, status, outcome, error code and cause, and error of the provider.';
const COLUMNS_ABOUT = {
  hour: 'Start of the UTC hour.',
  errors: 'Calls with a status of 400 or above, or that the provider or the gateway did not complete.',
};

/** Why a call failed, in the words of the provider and of the connection. Nothing is rewritten: instant on any log. */
export class ProviderErrors1798000140000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE request_log ${COLUMNS.map((name) => `ADD COLUMN ${name} text`).join(', ')};
      CREATE OR REPLACE VIEW errors_by_key_hour AS ${view(COLUMNS)};
    `);
    await comment(queryRunner, 'errors_by_key_hour', {
      kind: 'VIEW',
      about: ABOUT_ALL,
      columns: COLUMNS_ABOUT,
    });
    await commentOnRequestLog(queryRunner);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      DROP VIEW errors_by_key_hour;
      CREATE VIEW errors_by_key_hour AS ${view([])};
      ALTER TABLE request_log ${COLUMNS.map((name) => `DROP COLUMN ${name}`).join(', ')};
    `);
    await comment(queryRunner, 'errors_by_key_hour', { kind: 'VIEW', about: ABOUT, columns: COLUMNS_ABOUT });
  }
}

/** @param added columns at the end, where CREATE OR REPLACE can add them */
function view(added: readonly string[]): string {
  const columns = added.map((name) => `, l.${name}`).join('');
  return `
    SELECT date_trunc('hour', l.started_at, 'UTC') AS hour, t.name AS team, k.name AS key, l.key_id, l.provider, l.status,
      l.outcome, l.error_code, count(*) AS errors${columns}
    FROM request_log l LEFT JOIN gateway_key k ON k.id = l.key_id LEFT JOIN team t ON t.id = k.team_id
    WHERE l.status >= 400 OR l.outcome NOT IN ('completed', 'replayed', 'cached', 'client_aborted')
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8${columns}`;
}
