import { Check, Column, Entity, PrimaryColumn } from 'typeorm';
import type { StreamUsage } from './model-rules.js';

/** A team, to which gateway keys belong. */
@Entity('team')
@Check('team_stream_usage_check', `stream_usage IN ('as_sent', 'require', 'ask')`)
export class Team {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'team_pkey' })
  id!: string;

  @Column('text', { unique: true })
  name!: string;

  /** All keys of a disabled team are rejected. */
  @Column('boolean', { default: false })
  disabled!: boolean;

  /** Patterns of model names that its keys may use; null for all. */
  @Column('text', { array: true, nullable: true })
  models!: string[] | null;

  @Column('text', { name: 'stream_usage', default: 'as_sent' })
  streamUsage!: StreamUsage;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  /** Increases with every change by an actor, for If-Match. */
  @Column('int', { default: 1 })
  version!: number;
}
