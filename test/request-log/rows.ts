import { v7 as uuidv7 } from 'uuid';
import type { TestDatabase } from '../support/database.js';

export const TEAM = '01890a5d-ac96-774b-bcce-b302099a8057';
export const KEY = '01890a5d-ac96-774b-bcce-b302099a8058';

/** Puts a row into the log as the writer would. @returns its id */
export async function insertRow(
  database: TestDatabase,
  startedAt: Date,
  columns: Record<string, unknown> = {},
): Promise<string> {
  const id = uuidv7({ msecs: startedAt.getTime() });
  const row: Record<string, unknown> = {
    id,
    started_at: startedAt,
    team_id: TEAM,
    key_id: KEY,
    provider: 'default',
    method: 'POST',
    path: '/v1/chat/completions',
    model: 'gpt-4o',
    streamed: false,
    status: 200,
    outcome: 'completed',
    request_bytes: 10,
    response_bytes: 20,
    ...columns,
  };
  const names = Object.keys(row);
  await database.query(
    `INSERT INTO request_log (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(row),
  );
  return id;
}
