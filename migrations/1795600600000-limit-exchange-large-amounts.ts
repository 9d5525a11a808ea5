import type { MigrationInterface, QueryRunner } from 'typeorm';

const FUNCTIONS = ['limit_take_holds(uuid, bigint, interval, jsonb)', 'limit_take_rates(bigint, jsonb)'];
/** Ten times a free amount of over 922 million USD was out of the range of bigint, and the exchange of all limits failed. */
const TENTHS = [
  ['v_free * 10 < v_rule.amount', 'v_free < (v_rule.amount + 9) / 10'],
  ['(v_free - v_granted) * 10 < v_rule.amount', 'v_free - v_granted < (v_rule.amount + 9) / 10'],
] as const;

/** Compares what is free of a limit with a tenth of the amount, which cannot overflow. */
export class LimitExchangeLargeAmounts1795600600000 implements MigrationInterface {
  async up(queryRunner: QueryRunner): Promise<void> {
    for (const [from, to] of TENTHS) await replaceInFunctions(queryRunner, from, to);
  }

  async down(queryRunner: QueryRunner): Promise<void> {
    for (const [to, from] of TENTHS) await replaceInFunctions(queryRunner, from, to);
  }
}

async function replaceInFunctions(queryRunner: QueryRunner, from: string, to: string): Promise<void> {
  for (const name of FUNCTIONS) {
    const [{ definition }] = (await queryRunner.query(
      'SELECT pg_get_functiondef($1::regprocedure) AS definition',
      [name],
    )) as [{ definition: string }];
    if (!definition.includes(from)) throw new Error(`${name} does not contain: ${from}`);
    await queryRunner.query(definition.replaceAll(from, to));
  }
}
