import { Column, Entity, PrimaryColumn } from 'typeorm';

@Entity('invoice_line', { comment: 'What each call costs its team.' })
export class InvoiceLine {
  /** The ID of the row of the request log. */
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'invoice_line_pkey' })
  id!: string;

  @Column('uuid', { name: 'team_id' })
  teamId!: string;

  @Column('timestamptz', { name: 'started_at' })
  startedAt!: string;

  @Column('numeric', { name: 'cost_usd', precision: 18, scale: 9, nullable: true })
  costUsd!: string | null;
}
