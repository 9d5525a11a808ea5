import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { GatewayKey } from './gateway-key.entity.js';

/** One secret of a key. Only its SHA-256 digest and its first characters are stored. */
@Entity('gateway_key_secret', {
  comment: 'Secrets of gateway keys, of which only digests are stored. Rotation adds one.',
})
export class GatewayKeySecret {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'gateway_key_secret_pkey' })
  id!: string;

  @Index('gateway_key_secret_key_id_idx')
  @ForeignKey(() => GatewayKey, { name: 'gateway_key_secret_key_id_fkey' })
  @Column('uuid', { name: 'key_id' })
  keyId!: string;

  @Index('gateway_key_secret_digest_key', { unique: true })
  @Column('bytea', { comment: 'SHA-256 of the secret.' })
  digest!: Buffer;

  @Column('text', { comment: 'First characters of the secret, to recognise it.' })
  prefix!: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column('timestamptz', {
    name: 'expires_at',
    nullable: true,
    comment: 'End of the grace after a rotation; null if the secret was not rotated.',
  })
  expiresAt!: Date | null;

  @Column('timestamptz', {
    name: 'last_used_at',
    nullable: true,
    comment: 'Updated with a delay of some seconds.',
  })
  lastUsedAt!: Date | null;
}
