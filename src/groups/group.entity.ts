import { Column, Entity, PrimaryColumn, Unique, VersionColumn, VirtualColumn } from 'typeorm';
import { type RuleValues, rulesSql } from '../limit-rules/stored-rules.js';
import { teamsOfGroupSql } from '../teams/team-groups.js';

/** A group of teams. Groups do not nest. */
@Entity('team_group', { comment: 'Groups of teams. A team is in at most one.' })
@Unique('team_group_name_key', ['name'])
export class TeamGroup {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'team_group_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  @Column('text', { nullable: true, comment: 'Free text.' })
  note!: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  /** For If-Match. TypeORM raises it with each update; a team that joins or leaves raises it, too. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;

  /** The names of its teams, in the query that reads the group. */
  @VirtualColumn('text', { query: (group) => teamsOfGroupSql(`${group}.id`) })
  teams!: string[];

  /** Its limits, from their own table, in the query that reads the group. */
  @VirtualColumn('jsonb', { query: (group) => rulesSql(`${group}.id`) })
  rules!: RuleValues[] | null;
}
