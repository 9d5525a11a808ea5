import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A team, to which gateway keys belong. */
@Entity('team')
export class Team {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'team_pkey' })
  id!: string;

  @Column('text', { unique: true })
  name!: string;

  /** All keys of a disabled team are rejected. */
  @Column('boolean', { default: false })
  disabled!: boolean;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  /** Increases with every change by an actor, for If-Match. */
  @Column('int', { default: 1 })
  version!: number;
}
