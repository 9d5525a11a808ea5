import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { idOfCursor, type Page, pageOf } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import type { JobFilter, JobView } from './jobs.schema.js';
import type { ProviderJob } from './provider-job.entity.js';

type Row = Pick<
  ProviderJob,
  'id' | 'kind' | 'provider' | 'model' | 'state' | 'problem' | 'tries' | 'duplicates'
> & {
  team: string | null;
  team_id: string;
  key: string | null;
  key_id: string;
  started_at: Date;
  checked_at: Date | null;
  next_check_at: Date | null;
  ended_at: Date | null;
};

const SELECT = `
  SELECT j.id, j.kind, j.provider, j.model, j.state, j.problem, j.tries, j.duplicates, j.team_id, j.key_id, j.started_at,
         j.checked_at, j.next_check_at, j.ended_at, t.name AS team, k.name AS key
  FROM provider_job j LEFT JOIN team t ON t.id = j.team_id LEFT JOIN gateway_key k ON k.id = j.key_id`;
const LIST = `${SELECT}
  WHERE ($1::text IS NULL OR j.state = $1) AND ($2::text IS NULL OR j.provider = $2) AND ($3::uuid IS NULL OR j.id < $3)
  ORDER BY j.id DESC LIMIT $4`;
const CHECK = `
  UPDATE provider_job SET state = 'open', ended_at = NULL, next_check_at = clock_timestamp()
  WHERE id = $1 AND state <> 'settled' RETURNING id`;

/** Shows jobs, and has one checked at once. */
@Injectable()
export class JobsService {
  constructor(private readonly dataSource: DataSource) {}

  /** The newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ state, provider, limit, cursor }: JobFilter): Promise<Page<JobView>> {
    const values = [state ?? null, provider ?? null, idOfCursor(cursor), limit + 1];
    return pageOf(await this.dataSource.query<Row[]>(LIST, values), limit, view);
  }

  /** @throws ServiceError not_found */
  async get(id: string): Promise<JobView> {
    const [row] = await this.dataSource.query<Row[]>(`${SELECT} WHERE j.id = $1`, [id]);
    if (row === undefined) throw ServiceError.of('not_found', 'id', 'there is no such job');
    return view(row);
  }

  /** @throws ServiceError not_found; conflict for a job that is settled */
  async check(id: string): Promise<JobView> {
    await this.dataSource.query(CHECK, [id]);
    const job = await this.get(id);
    if (job.state === 'settled')
      throw ServiceError.of('conflict', 'id', 'this job is settled: what it used is in the request log');
    return job;
  }
}

function view(row: Row): JobView {
  return {
    id: row.id,
    kind: row.kind,
    provider: row.provider,
    model: row.model,
    team: row.team,
    team_id: row.team_id,
    key: row.key,
    key_id: row.key_id,
    state: row.state,
    problem: row.problem,
    started_at: row.started_at.toISOString(),
    checked_at: row.checked_at?.toISOString() ?? null,
    next_check_at: row.next_check_at?.toISOString() ?? null,
    ended_at: row.ended_at?.toISOString() ?? null,
    tries: row.tries,
    duplicates: row.duplicates,
  };
}
