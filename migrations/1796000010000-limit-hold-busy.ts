import type { MigrationInterface, QueryRunner } from 'typeorm';
import { replaceInFunctions } from './replace-in-functions.js';

const FUNCTIONS = ['limit_take_holds(uuid, bigint, interval, jsonb)'];

/** What is new in the function that the migration limit-exchange has created. */
const CHANGES = [
  [
    'refused bigint, recall boolean)',
    // "busy": reserved by calls under way or that wait; processes of the version before do not state it. "since":
    // milliseconds since this process has called back what the others do not use. "gone": a process that was not seen for
    // so many milliseconds is not expected back.
    'refused bigint, recall boolean, busy bigint, since bigint, gone bigint)',
  ],
  [
    'v_recalled boolean;',
    `v_recalled boolean;
        v_busy bigint;
        v_loose bigint;`,
  ],
  ['SELECT amount INTO v_old FROM limit_hold', 'SELECT amount, busy INTO v_old, v_busy FROM limit_hold'],
  ['IF v_base + v_granted <> v_old THEN', 'IF v_base + v_granted <> v_old OR v_busy <> e.busy THEN'],
  ['p_process, v_base + v_granted)', 'p_process, v_base + v_granted, COALESCE(e.busy, v_base + v_granted))'],
  [
    'DO UPDATE SET amount = EXCLUDED.amount;',
    'DO UPDATE SET amount = EXCLUDED.amount, busy = EXCLUDED.busy;',
  ],
  [
    'RETURN NEXT',
    `-- What the others may still return: what their calls do not use, and everything that a process holds which was not
          -- seen since it was called back. Processes are seen every 3 seconds.
          v_loose := 0;
          IF e.since IS NOT NULL AND v_granted < e.waiting THEN
            SELECT COALESCE(sum(CASE
              WHEN p.seen_at < clock_timestamp() - make_interval(secs => LEAST(e.since, 4000) / 1000.0) THEN h.amount
              ELSE GREATEST(h.amount - h.busy, 0) END), 0) INTO v_loose
            FROM limit_hold h JOIN limit_process p ON p.id = h.process
            WHERE h.rule_id = e.rule AND h.subject = e.subject AND h.window_start = v_at AND h.process <> p_process
              AND p.seen_at > clock_timestamp() - make_interval(secs => e.gone / 1000.0);
          END IF;
          RETURN NEXT`,
  ],
  [`'recalled', v_recalled)`, `'recalled', v_recalled, 'loose', v_loose::text)`],
] as const;

/** Holds state what calls under way use of them: only that makes a budget spent. */
export class LimitHoldBusy1796000010000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    await queryRunner.query(`
      ALTER TABLE limit_hold ADD COLUMN busy bigint NOT NULL DEFAULT 0;
      UPDATE limit_hold SET busy = amount;
    `);
    for (const [from, to] of CHANGES) await replaceInFunctions(queryRunner, FUNCTIONS, from, to);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const [from, to] of CHANGES.toReversed()) await replaceInFunctions(queryRunner, FUNCTIONS, to, from);
    await queryRunner.query('ALTER TABLE limit_hold DROP COLUMN busy');
  }
}
