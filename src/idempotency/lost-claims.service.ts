import { Injectable } from '@nestjs/common';
import type { PutBack } from '../regressions/regression.js';
import { Regressions } from '../regressions/regressions.service.js';
import { LostRowsService } from '../request-log/journal/lost-rows.service.js';
import type { LogRow } from '../request-log/columns.js';
import { RequestLogService } from '../request-log/request-log.service.js';
import { LogWriter } from '../request-log/writer/log-writer.js';
import { ClaimStore } from './claim-store.service.js';
import { IdempotencyRecords } from './idempotency-records.js';
import { recordsOf } from './lost-records.js';

/**
 * Puts back the records of `Idempotency-Key`s that Postgres has lost, so that no call runs twice: first those that calls
 * under way hold, then those of calls that have ended. The response of the latter is lost, so their outcome is unknown.
 */
@Injectable()
export class LostClaims {
  private readonly ended = new Map<string, LogRow>();

  constructor(
    private readonly store: ClaimStore,
    private readonly records: IdempotencyRecords,
    private readonly log: RequestLogService,
    private readonly writer: LogWriter,
    regressions: Regressions,
    rows: LostRowsService,
  ) {
    const handler = {
      refuse: () => this.note(),
      putBack: () => this.putBackHeld(),
      dismissed: () => this.forget(),
    };
    regressions.onRegression('ends', handler);
    // Also if nothing that is counted was lost: claims and responses commit before the rows of their calls.
    regressions.onNewServer(handler);
    rows.beforeRows((batch) => this.putBack(batch));
  }

  /** Claims of calls under way, and of calls that have ended and whose rows were not written to the server before. */
  private note(): void {
    this.store.noteHeld();
    for (const rows of [this.log.openRows(true), this.writer.waitingRows()])
      for (const row of rows) if (row.claim !== undefined) this.ended.set(row.id, row);
  }

  private forget(): void {
    this.store.forgetNoted();
    this.ended.clear();
  }

  private async putBackHeld(): Promise<PutBack> {
    this.note();
    const rows = [...this.ended.values()];
    const claims = (await this.store.putBack()) + (await this.putBack(rows));
    for (const { id } of rows) this.ended.delete(id);
    return { claims };
  }

  private putBack(rows: readonly LogRow[]): Promise<number> {
    return this.records.putBackAbandoned(recordsOf(rows));
  }
}
