import type { MigrationInterface, QueryRunner } from 'typeorm';
import { replaceInFunctions } from './replace-in-functions.js';

const FUNCTIONS = ['limit_take_holds(uuid, bigint, interval, jsonb)', 'limit_take_rates(bigint, jsonb)'];
/** Ten times a free amount of over 922 million USD was out of the range of bigint, and the exchange of all limits failed. */
const TENTHS = [
  ['v_free * 10 < v_rule.amount', 'v_free < (v_rule.amount + 9) / 10'],
  ['(v_free - v_granted) * 10 < v_rule.amount', 'v_free - v_granted < (v_rule.amount + 9) / 10'],
] as const;

/** Compares what is free of a limit with a tenth of the amount, which cannot overflow. */
export class LimitExchangeLargeAmounts1795600600000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    for (const [from, to] of TENTHS) await replaceInFunctions(queryRunner, FUNCTIONS, from, to);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const [to, from] of TENTHS) await replaceInFunctions(queryRunner, FUNCTIONS, from, to);
  }
}
