import type { MigrationInterface, QueryRunner } from 'typeorm';
import { replaceInFunctions } from './replace-in-functions.js';

const SWEEP = ['limit_sweep()'];
const SWEPT = [
  [
    `DELETE FROM limit_meter m USING (`,
    `-- Of rules that were removed while an exchange was under way.
        DELETE FROM limit_hold h USING (
          SELECT h.ctid FROM limit_hold h LEFT JOIN limit_rule r ON r.id = h.rule_id WHERE r.id IS NULL
          FOR UPDATE OF h SKIP LOCKED) unknown
        WHERE h.ctid = unknown.ctid;
        DELETE FROM limit_meter m USING (`,
  ],
  [`OR (m.held = 0 AND r.scope IN ('team_end_user', 'key_end_user') AND CASE`, `OR (m.held = 0 AND CASE`],
  [
    `WHEN r.period IN ('minute', 'at_once') THEN
              NOT EXISTS`,
    `WHEN r.period IN ('minute', 'at_once') THEN
              r.scope IN ('team_end_user', 'key_end_user') AND NOT EXISTS`,
  ],
] as const;

const HOLDS = ['limit_take_holds(uuid, bigint, interval, jsonb)'];
const LOCK = 'v_meter := limit_lock_meter(e.rule, e.subject, v_at, e.skip);';
const UNKNOWN_SUBJECT = [
  LOCK,
  `-- An end user who has used nothing, and whose call needs more than there ever is: whoever makes names up gets no row.
          IF e.subject <> '' AND e.used = 0 AND e.kept = 0 AND e.recent = 0 AND (e.waiting = 0 OR e.one > v_rule.amount)
             AND NOT EXISTS (SELECT FROM limit_meter m
                             WHERE m.rule_id = e.rule AND m.subject = e.subject AND m.window_start = v_at) THEN
            RETURN NEXT jsonb_build_object('n', e.n, 'total', '0', 'free', v_rule.amount::text, 'most', v_rule.amount::text,
              'spent', '0', 'limit', v_rule.amount::text, 'low', false, 'recalled', false, 'loose', '0');
            CONTINUE;
          END IF;
          ${LOCK}`,
] as const;

const ALERT = ['limit_meter_alert()'];
const ALERTED = [
  ['v_data jsonb;', 'v_data jsonb;\n        v_ends timestamptz;'],
  [
    `IF NOT (v_crossed OR v_exhausted) THEN RETURN NULL; END IF;`,
    `IF NOT (v_crossed OR v_exhausted) THEN RETURN NULL; END IF;
        v_ends := CASE WHEN v_rule.period <> 'total' THEN (limit_window(v_rule.period, v_rule.time_zone, NEW.window_start)).ends END;
        -- A row that comes late has brought the meter back, which has the charge of that row only.
        IF v_ends < clock_timestamp() - interval '7 days' THEN RETURN NULL; END IF;`,
  ],
  [
    `CASE WHEN v_rule.period <> 'total' THEN extract(epoch FROM
                (limit_window(v_rule.period, v_rule.time_zone, NEW.window_start)).ends) * 1000 END`,
    `extract(epoch FROM v_ends) * 1000`,
  ],
  [`PERFORM webhook_emit('budget.threshold'`, `PERFORM limit_emit('budget.threshold'`],
  [`PERFORM webhook_emit('budget.exhausted'`, `PERFORM limit_emit('budget.exhausted'`],
] as const;

/** Bounds what end users that somebody makes up leave behind, and removes meters of past periods. */
export class LimitRetention1798000030002 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      -- Stores an alert of a budget; of the end users of a budget, 50 of each kind in 24 hours.
      CREATE FUNCTION limit_emit(p_type text, p_data jsonb) RETURNS void LANGUAGE plpgsql AS $$
      BEGIN
        IF p_data->>'subject' IS NOT NULL AND 50 <= (
          SELECT count(*) FROM webhook_event
          WHERE type = p_type AND created_at > clock_timestamp() - interval '24 hours'
            AND data->>'limit_id' = p_data->>'limit_id') THEN RETURN; END IF;
        PERFORM webhook_emit(p_type, p_data);
      END $$;
    `);
    for (const [from, to] of SWEPT) await replaceInFunctions(queryRunner, SWEEP, from, to);
    for (const [from, to] of ALERTED) await replaceInFunctions(queryRunner, ALERT, from, to);
    await replaceInFunctions(queryRunner, HOLDS, ...UNKNOWN_SUBJECT);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    const [lock, unknown] = UNKNOWN_SUBJECT;
    await replaceInFunctions(queryRunner, HOLDS, unknown, lock);
    for (const [from, to] of ALERTED.toReversed()) await replaceInFunctions(queryRunner, ALERT, to, from);
    for (const [from, to] of SWEPT.toReversed()) await replaceInFunctions(queryRunner, SWEEP, to, from);
    await queryRunner.query('DROP FUNCTION limit_emit(text, jsonb)');
  }
}
