import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Trust } from './trust.entity.js';

/** An identity token that its issuer had signed, and that a trust did not accept. */
@Entity('trust_failure', {
  comment: 'The last rejected identity tokens of each trust that its issuer has signed.',
})
@Index('trust_failure_trust_id_idx', ['trustId', 'id'])
export class TrustFailure {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'trust_failure_pkey' })
  id!: string;

  @ForeignKey(() => Trust, { name: 'trust_failure_trust_id_fkey', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'trust_id' })
  trustId!: string;

  @Column('timestamptz', { default: () => 'now()' })
  at!: Date;

  @Column('text', { comment: 'What was not met.' })
  reason!: string;

  @Column('jsonb', { comment: 'iss, aud and the claims that its conditions name, and no others.' })
  claims!: Record<string, unknown>;
}
