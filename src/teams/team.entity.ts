import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A team, to which gateway keys belong. */
@Entity('team', { comment: 'Teams, to which gateway keys belong.' })
export class Team {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'team_pkey' })
  id!: string;

  @Column('text', { unique: true })
  name!: string;

  @Column('boolean', { default: false, comment: 'All keys of a disabled team are rejected.' })
  disabled!: boolean;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  /** For If-Match. */
  @Column('int', { default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;
}
