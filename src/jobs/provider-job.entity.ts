import { Check, Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import type { JobKind } from '../bodies/usage/token-usage.js';

export const JOB_KINDS = ['batch', 'response', 'video'] as const satisfies readonly JobKind[];
/** `open`: it may still end; `settled`: its usage is in the row; `unknown`: what it used cannot be found out. */
export const JOB_STATES = ['open', 'settled', 'unknown'] as const;
export type JobState = (typeof JOB_STATES)[number];

/** Work that a provider goes on with after it has responded: a batch, a background response, a video. */
@Entity('provider_job', {
  comment:
    'Batches, background responses and videos at providers, whose usage is known later than their call.',
})
@Unique('provider_job_key', ['provider', 'kind', 'digest'])
@Check('provider_job_kind_check', `kind IN ('batch', 'response', 'video')`)
@Check('provider_job_state_check', `state IN ('open', 'settled', 'unknown')`)
export class ProviderJob {
  @PrimaryColumn('uuid', {
    primaryKeyConstraintName: 'provider_job_pkey',
    comment: 'The row of the call that created it: request_log.id.',
  })
  id!: string;

  @Column('timestamptz', { name: 'started_at', comment: 'When that call arrived: request_log.started_at.' })
  startedAt!: Date;

  @Column('text')
  provider!: string;

  @Column('text')
  kind!: JobKind;

  @Column('bytea', { comment: 'SHA-256 of where the job is at its provider.' })
  digest!: Buffer;

  @Column('bytea', {
    name: 'sealed_id',
    nullable: true,
    comment: 'Where the job is at its provider, encrypted with MASTER_KEY; null once it is settled.',
  })
  sealedId!: Buffer | null;

  @Column('uuid', { name: 'team_id' })
  teamId!: string;

  @Column('uuid', { name: 'key_id' })
  keyId!: string;

  @Column('text', { nullable: true, comment: 'The model that the request named; null: none.' })
  model!: string | null;

  @Column('text', { default: 'open' })
  state!: JobState;

  @Column('text', { nullable: true, comment: 'Why the last check did not settle it; null: it goes on.' })
  problem!: string | null;

  @Index('provider_job_next_check_at_idx', { where: 'next_check_at IS NOT NULL' })
  @Column('timestamptz', { name: 'next_check_at', nullable: true })
  nextCheckAt!: Date | null;

  @Column('timestamptz', { name: 'checked_at', nullable: true })
  checkedAt!: Date | null;

  @Column('timestamptz', { name: 'ended_at', nullable: true, comment: 'When it was settled or given up.' })
  endedAt!: Date | null;

  @Column('int', { default: 0 })
  tries!: number;

  @Column('uuid', {
    array: true,
    default: '{}',
    comment: 'Rows of other calls that got the same job. They cost nothing.',
  })
  duplicates!: string[];
}
