import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { type ConsumedRow, type LogConsumer, LogConsumers } from '../../../src/index.js';
import { InvoiceLine } from './invoice-line.entity.js';

/** Has a line for each call, of calls before this module too. */
@Injectable()
export class InvoicesService implements LogConsumer {
  readonly from = 'start';

  constructor(consumers: LogConsumers) {
    consumers.register('invoices', this);
  }

  async rows(manager: EntityManager, rows: readonly ConsumedRow[]): Promise<void> {
    const lines = rows.map(({ id, team_id, started_at, cost_usd }) => ({
      id,
      teamId: team_id,
      startedAt: started_at,
      costUsd: cost_usd,
    }));
    // A row whose cost came late comes again.
    await manager.upsert(InvoiceLine, lines, ['id']);
  }
}
