import { Column, Entity, PrimaryColumn } from 'typeorm';

const KEY = { primaryKeyConstraintName: 'unpriced_model_pkey' };

/** A model that was called on a UTC day while it had no price. */
@Entity('unpriced_model', { comment: 'Models that were called and have no price.' })
export class UnpricedModel {
  @PrimaryColumn('text', { ...KEY })
  provider!: string;

  @PrimaryColumn('text', { ...KEY })
  model!: string;

  @PrimaryColumn('date', { ...KEY })
  day!: string;

  /** When its rows were priced for the first time. They are priced once more, then this row is deleted. */
  @Column('timestamptz', { name: 'priced_at', nullable: true })
  pricedAt!: Date | null;
}
