import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Raw, type Repository } from 'typeorm';
import { audited, lockRow, type Subject } from '../../audit/audited.js';
import { isUuid, type Page, pageOf, type PageRequest, pageOptions } from '../../database/page.js';
import { ServiceError } from '../../errors/service-error.js';
import type { Actor } from '../../platform/actor.js';
import { DatabaseRegression, type RegressionState } from '../database-regression.entity.js';
import type { RegressionView } from './regressions.schema.js';

const REGRESSION: Subject<RegressionView> = {
  type: 'regression',
  lock: lockRow(DatabaseRegression),
  find,
  shown: ({ id, state, server }) => ({ id, name: server, state }),
};

/** Shows regressions, and stores what administrators decide. Every process reads it at its next poll, within 2 seconds. */
@Injectable()
export class RegressionsAdminService {
  constructor(
    @InjectRepository(DatabaseRegression) private readonly regressions: Repository<DatabaseRegression>,
  ) {}

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list(page: PageRequest): Promise<Page<RegressionView>> {
    return pageOf(await this.regressions.find(pageOptions(page)), page.limit, viewOf);
  }

  /** @throws ServiceError not_found */
  get(id: string): Promise<RegressionView> {
    return find(this.regressions.manager, id);
  }

  /**
   * Lets every process put back what it has.
   *
   * @throws ServiceError not_found; conflict unless it waits for a decision, as the latest on the server that runs now
   */
  putBack(id: string, by: Actor): Promise<RegressionView> {
    return this.decide(id, 'put_back', ['waiting'], by);
  }

  /**
   * Nothing is put back, and what processes have refused meanwhile is accepted again.
   *
   * @throws ServiceError not_found; conflict if it is put back already
   */
  dismiss(id: string, by: Actor): Promise<RegressionView> {
    return this.decide(id, 'dismissed', ['waiting', 'another_database'], by);
  }

  private decide(
    id: string,
    state: RegressionState,
    from: readonly RegressionState[],
    by: Actor,
  ): Promise<RegressionView> {
    const change = { id, action: state, by };
    return audited(this.regressions.manager, REGRESSION, change, async (manager, before) => {
      if (before.state === state) return null;
      if (!from.includes(before.state))
        throw new ServiceError('conflict', `This loss waits for no decision: its state is ${before.state}.`);
      if (state === 'put_back' && !(await isFollowed(manager, before.id)))
        throw new ServiceError(
          'conflict',
          'Postgres has started again since this loss was noticed, or has lost more, so no process puts anything back for it. Decide about the newest loss that waits; if there is none, stop the gateway and run: postern journal drain --kept. Then dismiss this one.',
        );
      await manager.update(DatabaseRegression, before.id, { state, updatedAt: () => 'clock_timestamp()' });
      return {};
    });
  }
}

/** Processes follow the latest loss of the server that runs now. */
async function isFollowed(manager: EntityManager, id: string): Promise<boolean> {
  const latest = await manager.findOne(DatabaseRegression, {
    where: { server: Raw((column) => `${column} = pg_postmaster_start_time()`) },
    order: { number: 'DESC' },
  });
  return latest?.id === id;
}

async function find(manager: EntityManager, id: string): Promise<RegressionView> {
  const row = isUuid(id) ? await manager.findOneBy(DatabaseRegression, { id }) : null;
  if (row === null) throw new ServiceError('not_found', 'There is no such regression.');
  return viewOf(row);
}

function viewOf(row: DatabaseRegression): RegressionView {
  return {
    id: row.id,
    state: row.state,
    server: row.server.toISOString(),
    noticed_at: row.noticedAt.toISOString(),
    lost_from: row.lostFrom?.toISOString() ?? null,
    gap_seconds: row.gapSeconds,
    runs: Object.entries(row.runs).map(([run, { surviving, acknowledged }]) => ({
      run,
      surviving: Number(surviving),
      acknowledged: Number(acknowledged),
    })),
    rows_put_back: Number(row.rowsPutBack),
    rows_skipped: Number(row.rowsSkipped),
    claims_put_back: Number(row.claimsPutBack),
    ends_put_back: Number(row.endsPutBack),
    lost_entries: row.lostEntries.map((entry) => ({
      id: entry.id,
      at: entry.at,
      actor: entry.actor,
      action: entry.action,
      subject_type: entry.subjectType,
      subject_id: entry.subjectId,
      subject_name: entry.subjectName,
    })),
  };
}
