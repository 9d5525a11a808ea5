import type { MigrationInterface, QueryRunner } from 'typeorm';
import { replaceInFunctions } from './replace-in-functions.js';

const HOLDS = ['limit_take_holds(uuid, bigint, interval, jsonb)'];
const RATES = ['limit_take_rates(bigint, jsonb)'];

const LOCK_HOLDS = [
  [
    'since bigint, gone bigint)',
    // "skip": a meter that another transaction keeps locked gets no result; processes of the version before wait for it.
    'since bigint, gone bigint, skip boolean)',
  ],
  [
    `INSERT INTO limit_meter (rule_id, subject, window_start) VALUES (e.rule, e.subject, v_at) ON CONFLICT DO NOTHING;
          SELECT * INTO v_meter FROM limit_meter
            WHERE rule_id = e.rule AND subject = e.subject AND window_start = v_at FOR UPDATE;
          -- The rule is being removed.
          IF NOT FOUND THEN CONTINUE; END IF;`,
    `v_meter := limit_lock_meter(e.rule, e.subject, v_at, e.skip);
          IF v_meter.rule_id IS NULL THEN CONTINUE; END IF;`,
  ],
] as const;

const LOCK_RATES = [
  ['refused bigint, changes jsonb)', 'refused bigint, changes jsonb, skip boolean)'],
  [
    `INSERT INTO limit_meter (rule_id, subject, window_start) VALUES (e.rule, e.subject, to_timestamp(0))
            ON CONFLICT DO NOTHING;
          SELECT * INTO v_meter FROM limit_meter
            WHERE rule_id = e.rule AND subject = e.subject AND window_start = to_timestamp(0) FOR UPDATE;
          IF NOT FOUND THEN CONTINUE; END IF;`,
    `v_meter := limit_lock_meter(e.rule, e.subject, to_timestamp(0), e.skip);
          IF v_meter.rule_id IS NULL THEN CONTINUE; END IF;`,
  ],
] as const;

/** A transaction that keeps a meter locked delays the calls of that limit alone. */
export class LimitLockedMeters1798000030001 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- Creates and locks a meter. Null: its rule is being removed, or another transaction keeps it locked. An exchange waits
      -- 100 ms for the first such meter, longer than settlements and other exchanges take, and hardly for others, so that
      -- all that it can take is taken before the process gives up.
      CREATE FUNCTION limit_lock_meter(p_rule uuid, p_subject text, p_at timestamptz, p_skip boolean) RETURNS limit_meter
      LANGUAGE plpgsql AS $$
      DECLARE
        v_meter limit_meter;
      BEGIN
        SELECT * INTO v_meter FROM limit_meter
          WHERE rule_id = p_rule AND subject = p_subject AND window_start = p_at FOR UPDATE SKIP LOCKED;
        IF FOUND THEN RETURN v_meter; END IF;
        IF p_skip AND current_setting('lock_timeout') <> '1ms' THEN PERFORM set_config('lock_timeout', '100ms', true); END IF;
        BEGIN
          INSERT INTO limit_meter (rule_id, subject, window_start) VALUES (p_rule, p_subject, p_at) ON CONFLICT DO NOTHING;
          SELECT * INTO v_meter FROM limit_meter
            WHERE rule_id = p_rule AND subject = p_subject AND window_start = p_at FOR UPDATE;
        EXCEPTION WHEN lock_not_available THEN
          IF p_skip IS NULL THEN RAISE; END IF;
          PERFORM set_config('lock_timeout', '1ms', true);
        END;
        RETURN v_meter;
      END $$;

      -- What is locked is left for the next attempt.
      ALTER FUNCTION limit_forget(uuid) SET lock_timeout = '1s';
    `);
    for (const [from, to] of LOCK_HOLDS) await replaceInFunctions(queryRunner, HOLDS, from, to);
    for (const [from, to] of LOCK_RATES) await replaceInFunctions(queryRunner, RATES, from, to);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const [from, to] of LOCK_RATES) await replaceInFunctions(queryRunner, RATES, to, from);
    for (const [from, to] of LOCK_HOLDS) await replaceInFunctions(queryRunner, HOLDS, to, from);
    await queryRunner.query(`
      ALTER FUNCTION limit_forget(uuid) RESET lock_timeout;
      DROP FUNCTION limit_lock_meter(uuid, text, timestamptz, boolean);
    `);
  }
}
