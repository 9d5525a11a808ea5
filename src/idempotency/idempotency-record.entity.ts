import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** One `Idempotency-Key` in use: claimed while its call runs, then with the response of that call. */
@Entity('idempotency_record', {
  comment: 'Each Idempotency-Key in use, with the encrypted response of its call.',
})
@Index('idempotency_record_expires_at_idx', ['expiresAt'])
@Index('idempotency_record_key_id_idx', ['keyId', 'storedBytes'])
export class IdempotencyRecord {
  @PrimaryColumn('bytea', {
    primaryKeyConstraintName: 'idempotency_record_pkey',
    comment: 'SHA-256 of gateway key, method, target and value.',
  })
  id!: Buffer;

  @Column('uuid', { name: 'key_id' })
  keyId!: string;

  @Column('uuid', {
    name: 'call_id',
    comment: 'The id of the row in request_log of the call that holds the claim.',
  })
  callId!: string;

  @Column('bytea', {
    nullable: true,
    comment: 'The encrypted response; null while the call runs, and for ever if its process died.',
  })
  answer!: Buffer | null;

  @Column('int', { name: 'stored_bytes', default: 0 })
  storedBytes!: number;

  @Column('timestamptz', {
    name: 'lease_until',
    comment:
      'After this time, without a response, no process runs the call any more. -infinity: its outcome stays unknown.',
  })
  leaseUntil!: Date;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date;
}
