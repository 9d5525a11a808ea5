import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Of the counters of changes of keys and of limits. */
const FIND = `
  SELECT tg.tgrelid::regclass::text AS "table", tg.tgname AS name, pg_get_triggerdef(tg.oid) AS definition
  FROM pg_trigger tg JOIN pg_proc p ON p.oid = tg.tgfoid
  WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND NOT tg.tgisinternal
    AND (p.proname = 'count_key_change' OR p.proname = 'count_change' AND tg.tgargs IN ('keys\\000'::bytea, 'limits\\000'::bytea))
  ORDER BY 1, 2`;

const NOW = ['CREATE TRIGGER', ' FOR EACH ROW'] as const;
const AT_COMMIT = ['CREATE CONSTRAINT TRIGGER', ' DEFERRABLE INITIALLY DEFERRED FOR EACH ROW'] as const;

/**
 * Changes of keys and limits are counted at the commit. A counter is locked to the end of the transaction that counts: one that
 * went on to lock other rows met those that had locked these rows and waited for the counter. Now it is the last lock of all.
 *
 * A migration that changes rows of these tables and then the table itself must count them between both, by
 * `SET CONSTRAINTS ALL IMMEDIATE`.
 */
export class LateCounters1798000540000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await replace(queryRunner, NOW, AT_COMMIT);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    await replace(queryRunner, AT_COMMIT, NOW);
  }
}

async function replace(
  queryRunner: QueryRunner,
  was: readonly [string, string],
  is: readonly [string, string],
): Promise<void> {
  // In the order of key look-ups: a look-up that waits for a later one must not hold an earlier one.
  await queryRunner.query(`
    LOCK TABLE gateway_key_secret, gateway_key, team, trust, sign_in, person, team_group, limit_rule
    IN ACCESS EXCLUSIVE MODE`);
  const triggers = (await queryRunner.query(FIND)) as { table: string; name: string; definition: string }[];
  if (triggers.length === 0)
    throw new Error('the triggers that count changes are not in the schema of this session');
  for (const { table, name, definition } of triggers) {
    const next = was.reduce((text, part, at) => text.replace(part, is[at]!), definition);
    if (!next.startsWith(is[0]) || !next.includes(is[1]))
      throw new Error(`the trigger ${name} cannot be replaced: ${definition}`);
    await queryRunner.query(`DROP TRIGGER "${name}" ON ${table}; ${next}`);
  }
}
