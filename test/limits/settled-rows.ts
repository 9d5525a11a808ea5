import type { ClientBase } from 'pg';
import { settlement } from '../../src/limits/ledger/settlement.js';
import type { LogRow } from '../../src/request-log/columns.js';
import * as log from '../../src/request-log/writer/insert-rows.js';

/** The log writer's functions with the settlement that a gateway gives it. */
const settling = log.settlingWith({ settlement });

export function insertRows(rows: readonly LogRow[]): ReturnType<typeof log.insertRows> {
  return log.insertRows(rows, settling);
}

export function insertCreatingDays(
  client: ClientBase,
  rows: readonly LogRow[],
  areNew = false,
): Promise<bigint | null> {
  return log.insertCreatingDays(client, rows, settling, areNew);
}

export function insertBatch(
  client: ClientBase,
  rows: readonly LogRow[],
  results: log.BatchResults,
): Promise<void> {
  return log.insertBatch(client, rows, results, settling);
}
