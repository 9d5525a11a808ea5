import { v7 as uuidv7 } from 'uuid';
import type { TestDatabase } from '../support/database.js';

export const TEAM = uuidv7();
export const KEY = uuidv7();

/** Billionths of a dollar. */
export const USD = 1_000_000_000n;

/** Puts a rule of KEY or TEAM into the database. @returns its id */
export async function addRule(
  database: TestDatabase,
  resource: string,
  period: string,
  amount: bigint | number,
  columns: Record<string, unknown> = {},
): Promise<string> {
  const rule: Record<string, unknown> = {
    id: uuidv7(),
    scope: 'key',
    scope_id: KEY,
    resource,
    period,
    amount: String(amount),
    ...columns,
  };
  const names = Object.keys(rule);
  await database.query(
    `INSERT INTO limit_rule (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(rule),
  );
  return rule.id as string;
}

export interface MeterRow {
  subject: string;
  spent: bigint;
  held: bigint;
  refused: bigint;
}

/** What is in parts is spent too. The rule has one meter. */
export async function meterOf(database: TestDatabase, rule: string): Promise<MeterRow> {
  const [row] = await database.query<{ subject: string; spent: string; held: string; refused: string }>(
    `SELECT subject, held, refused,
            spent + COALESCE((SELECT sum(spent) FROM limit_spent s WHERE s.rule_id = m.rule_id), 0) AS spent
     FROM limit_meter m WHERE rule_id = $1`,
    [rule],
  );
  return {
    subject: row!.subject,
    spent: BigInt(row!.spent),
    held: BigInt(row!.held),
    refused: BigInt(row!.refused),
  };
}

/** The sum of the charges in the request log, in billionths of a dollar. */
export async function chargedUsd(database: TestDatabase): Promise<bigint> {
  const [row] = await database.query<{ sum: string }>(
    'SELECT (COALESCE(sum(charge_usd), 0) * 1000000000)::bigint::text AS sum FROM request_log',
  );
  return BigInt(row!.sum);
}

/** What the holds of a rule add up to. */
export async function holdsOf(database: TestDatabase, rule: string): Promise<bigint> {
  const [row] = await database.query<{ sum: string }>(
    'SELECT COALESCE(sum(amount), 0)::text AS sum FROM limit_hold WHERE rule_id = $1',
    [rule],
  );
  return BigInt(row!.sum);
}
