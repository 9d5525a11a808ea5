import { insertRows } from '../limits/settled-rows.js';
import { createDays, logRow } from '../request-log/rows.js';
import { ADMIN_TOKEN } from '../support/gateway.js';
import type { TestDatabase } from '../support/database.js';

export interface OwnedKey {
  id: string;
  team_id: string;
  name?: string;
  prefix?: string;
  expires_at?: string | null;
}

/** Writes calls of a key as the log writer does, each with this charge: its statement settles them. */
export async function spend(database: TestDatabase, key: OwnedKey, ...usd: string[]): Promise<void> {
  const now = Date.now();
  await createDays(database, now);
  const rows = usd.map((amount) =>
    logRow(now, { key_id: key.id, team_id: key.team_id, charge_usd: amount, cost_usd: amount }),
  );
  const { text, values } = insertRows(rows);
  await database.query(text, values);
}

/** The events that are stored, oldest first. */
export function storedEvents(
  database: TestDatabase,
): Promise<{ type: string; data: Record<string, unknown> }[]> {
  return database.query('SELECT type, data FROM webhook_event ORDER BY created_at');
}

/** Makes every delivery due that has failed. */
export async function hasten(database: TestDatabase): Promise<void> {
  await database.query(
    'UPDATE webhook_delivery SET next_attempt_at = clock_timestamp() WHERE next_attempt_at IS NOT NULL',
  );
}

/** Puts the next attempt of every delivery off, which a busy machine may reach before a test has looked. */
export async function postpone(database: TestDatabase): Promise<void> {
  await database.query(
    `UPDATE webhook_delivery SET next_attempt_at = now() + interval '1 hour' WHERE next_attempt_at IS NOT NULL`,
  );
}

/** Calls the admin API of a gateway process. */
export async function adminCall<T>(url: string, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
