import { createHash } from 'node:crypto';
import type { ClientBase } from 'pg';
import type { JobKind } from '../bodies/usage/token-usage.js';
import { correction } from '../limits/ledger/settlement.js';
import { correctedRow, CORRECTION_VALUES, valuesOfCorrection } from '../request-log/charges.js';
import type { LogRow } from '../request-log/columns.js';
import { setFree } from '../request-log/row-cost.js';

/** A job as the journal has it. */
export interface NotedJob {
  kind: JobKind;
  /** In hexadecimal. */
  digest: string;
  /** In base64. */
  sealed: string;
}

/** Identifies a job at its provider. @param path below the provider's URL */
export function digestOf(path: string): Buffer {
  return createHash('sha256').update(path).digest();
}

const value = (n: number) => `$${CORRECTION_VALUES + n}`;
/**
 * Stores the job of a row. If another row has it already, such as that of a call that the client repeated, this row costs
 * nothing: it becomes a duplicate, once.
 */
const ADD = correction(`
  stored AS (
    INSERT INTO provider_job AS j (id, started_at, provider, kind, digest, sealed_id, team_id, key_id, model, next_check_at)
    VALUES ($1, $2, ${value(1)}, ${value(2)}, ${value(3)}, ${value(4)}, ${value(5)}, ${value(6)}, ${value(7)},
            clock_timestamp() + interval '1 minute')
    ON CONFLICT ON CONSTRAINT provider_job_key DO UPDATE SET duplicates = j.duplicates || EXCLUDED.id
    WHERE j.id <> EXCLUDED.id AND NOT EXCLUDED.id = ANY (j.duplicates)
    RETURNING id),
  ${correctedRow('SELECT id FROM stored WHERE id <> $1::uuid')}`);

/** Stores the jobs of rows that are in Postgres; doing it again changes nothing. */
export async function addJobs(client: ClientBase, rows: readonly LogRow[]): Promise<void> {
  for (const row of rows) {
    if (row.job === undefined) continue;
    const { kind, digest, sealed } = JSON.parse(row.job) as NotedJob;
    await client.query(ADD, [
      ...valuesOfCorrection(setFree({ ...row }), '0', 0),
      ...[row.provider, kind, Buffer.from(digest, 'hex'), Buffer.from(sealed, 'base64')],
      ...[row.team_id, row.key_id, row.model],
    ]);
  }
}
