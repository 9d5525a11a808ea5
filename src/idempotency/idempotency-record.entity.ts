import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** One `Idempotency-Key` in use: claimed while its call runs, then with the response of that call. */
@Entity('idempotency_record')
@Index('idempotency_record_expires_at_idx', ['expiresAt'])
@Index('idempotency_record_key_id_idx', ['keyId', 'storedBytes'])
export class IdempotencyRecord {
  /** SHA-256 of gateway key, method, target and value: whose call under which name. */
  @PrimaryColumn('bytea', { primaryKeyConstraintName: 'idempotency_record_pkey' })
  id!: Buffer;

  @Column('uuid', { name: 'key_id' })
  keyId!: string;

  /** The call that holds the claim; the id of its row in the request log. */
  @Column('uuid', { name: 'call_id' })
  callId!: string;

  /** The encrypted response; null while the call runs, and for ever if its process died. */
  @Column('bytea', { nullable: true })
  answer!: Buffer | null;

  @Column('int', { name: 'stored_bytes', default: 0 })
  storedBytes!: number;

  /** After this time, without a response, no process runs the call any more. -infinity: its outcome stays unknown. */
  @Column('timestamptz', { name: 'lease_until' })
  leaseUntil!: Date;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date;
}
