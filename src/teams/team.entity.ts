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
import { SIGN_IN_COMMENT, type SignInSettings } from './sign-in.js';
import { Annotated } from './annotations.js';
import { CLAUDE_CODE_COMMENT, type ClaudeCodeSettings } from './claude-code.js';
import { groupNameSql } from './team-groups.js';
import { STREAM_USAGE_COMMENT, type StreamUsage } from './model-rules.js';

/** A team, to which gateway keys belong. */
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

  @Column('text', {
    array: true,
    nullable: true,
    comment:
      'Names of the providers and routes that its keys may use; null for its own and those of no team.',
  })
  providers!: string[] | null;

  @Column('text', {
    name: 'default_provider',
    nullable: true,
    comment: 'Provider or route that its calls to /v1 go to; null for the default of all teams.',
  })
  defaultProvider!: string | null;

  /** @internal */
  @Column('jsonb', { name: 'self_service', nullable: true, comment: SELF_SERVICE_COMMENT })
  selfService!: SelfService | null;

  /** @internal */
  @Column('jsonb', { name: 'sign_in', nullable: true, comment: SIGN_IN_COMMENT })
  signIn!: SignInSettings | null;

  /** @internal */
  @Column('jsonb', { name: 'claude_code', nullable: true, comment: CLAUDE_CODE_COMMENT })
  claudeCode!: ClaudeCodeSettings | null;

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
