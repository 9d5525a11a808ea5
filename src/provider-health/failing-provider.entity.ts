import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A provider that fails, until it recovers. */
@Entity('failing_provider', { comment: 'Providers that fail most of their calls now; others have no row.' })
export class FailingProvider {
  @PrimaryColumn('text', { primaryKeyConstraintName: 'failing_provider_pkey' })
  provider!: string;

  @Column('timestamptz', { default: () => 'now()' })
  since!: Date;

  @Column('int', { comment: 'Calls of the last three minutes in which there were any.' })
  calls!: number;

  @Column('int', { comment: 'Those of them that failed.' })
  failures!: number;

  @Column('text', { nullable: true, comment: 'What most of the failures reported.' })
  reason!: string | null;

  @Column('timestamptz', { name: 'last_call_at' })
  lastCallAt!: Date;
}
