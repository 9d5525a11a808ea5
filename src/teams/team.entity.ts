import {
  Check,
  Column,
  Entity,
  ForeignKey,
  Index,
  PrimaryColumn,
  VersionColumn,
  VirtualColumn,
} from 'typeorm';
import { type RuleValues, rulesSql } from '../limit-rules/stored-rules.js';
import { SELF_SERVICE_COMMENT, type SelfService } from './self-service.js';
import { Annotated } from './annotations.js';
import { groupNameSql } from './team-groups.js';
import { STREAM_USAGE_COMMENT, type StreamUsage } from './model-rules.js';

/**
 * A team, to which gateway keys belong.
 *
 * @beta
 */
@Check('team_stream_usage_check', `stream_usage IN ('as_sent', 'require', 'ask')`)
@Entity('team', { comment: 'Teams, to which gateway keys belong.' })
export class Team extends Annotated {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'team_pkey' })
  id!: string;

  @Column('text', { unique: true })
  name!: string;

  @Column('boolean', { default: false, comment: 'All keys of a disabled team are rejected.' })
  disabled!: boolean;

  @Column('text', {
    array: true,
    nullable: true,
    comment: 'Patterns of model names that its keys may use; null for all.',
  })
  models!: string[] | null;

  @Column('text', { name: 'stream_usage', default: 'as_sent', comment: STREAM_USAGE_COMMENT })
  streamUsage!: StreamUsage;

  /** @internal */
  @Column('jsonb', { name: 'self_service', nullable: true, comment: SELF_SERVICE_COMMENT })
  selfService!: SelfService | null;

  /** @internal */
  @ForeignKey('TeamGroup', { name: 'team_group_id_fkey' })
  @Index('team_group_id_idx')
  @Column('uuid', { name: 'group_id', nullable: true, comment: 'The group of the team; null for none.' })
  groupId!: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;

  /**
   * The name of its group, in the query that reads the team.
   *
   * @internal
   */
  @VirtualColumn('text', { query: (team) => groupNameSql(`${team}.group_id`) })
  group!: string | null;

  /**
   * Its limits, from their own table, in the query that reads the team.
   *
   * @internal
   */
  @VirtualColumn('jsonb', { query: (team) => rulesSql(`${team}.id`) })
  rules!: RuleValues[] | null;
}
