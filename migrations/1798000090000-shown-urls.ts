import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What an older version showed of a URL: scheme, host and port, then a path or a query. */
const SHOWN = String.raw`'^([a-z]+://[^/?]+)[/?].+$', '\1/${'…'}'`;

const redacted = (column: string) => `
  UPDATE audit_log SET ${column} = jsonb_set(${column}, '{url}', to_jsonb(regexp_replace(${column} ->> 'url', ${SHOWN})))
  WHERE subject_type IN ('webhook', 'sink') AND jsonb_typeof(${column} -> 'url') = 'string'`;

/**
 * The path of a webhook's or a sink's URL is a credential for many receivers: only scheme, host and port are shown, also in
 * old entries of the audit log. Errors of HTTP sinks no longer contain text of a response.
 */
export class ShownUrls1798000090000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    for (const table of ['webhook', 'sink'])
      await queryRunner.query(`UPDATE ${table} SET shown_url = regexp_replace(shown_url, ${SHOWN})`);
    // The next attempt records it again.
    await queryRunner.query(`UPDATE sink SET last_error = NULL, last_error_at = NULL WHERE kind = 'http'`);
    for (const column of ['before', 'after']) await queryRunner.query(redacted(column));
    // A webhook has no other name. Those of an applied document are in a list: "create webhook https://…".
    await queryRunner.query(`
      UPDATE audit_log SET subject_name = regexp_replace(subject_name, ${SHOWN}) WHERE subject_type = 'webhook'`);
    await queryRunner.query(String.raw`
      UPDATE audit_log SET after = jsonb_set(after, '{changes}', (
        SELECT jsonb_agg(regexp_replace(change, '^([a-z]+ webhook [a-z]+://[^/?]+)[/?].+$', '\1/${'…'}') ORDER BY place)
        FROM jsonb_array_elements_text(after -> 'changes') WITH ORDINALITY AS listed (change, place)))
      WHERE subject_type = 'configuration' AND jsonb_array_length(after -> 'changes') > 0`);
  }

  /** What was removed is not stored elsewhere. An older version works without it. */
  async down(): Promise<void> {}
}
