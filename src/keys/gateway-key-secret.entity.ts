import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { GatewayKey } from './gateway-key.entity.js';

/** `key`: a static secret. Others are tokens, which always end: of a sign-in, or exchanged for an identity token. */
export type SecretKind = 'key' | 'sign_in' | 'exchange';

/** One secret of a key. Only its SHA-256 digest and its first characters are stored. */
@Entity('gateway_key_secret', {
  comment: 'Secrets of gateway keys, of which only digests are stored. Rotation adds one.',
})
@Check('gateway_key_secret_kind_check', `kind IN ('key', 'sign_in', 'exchange')`)
@Check(
  'gateway_key_secret_token_check',
  `(kind = 'key') = (subject IS NULL) AND (kind = 'key' OR expires_at IS NOT NULL)`,
)
@Check('gateway_key_secret_trust_check', `(kind = 'exchange') = (trust_id IS NOT NULL)`)
@Check('gateway_key_secret_sign_in_check', `(kind = 'sign_in') = (sign_in_id IS NOT NULL)`)
@Index('gateway_key_secret_static_idx', ['keyId'], { where: `kind = 'key'` })
@Index('gateway_key_secret_ended_idx', ['expiresAt'], { where: `kind <> 'key'` })
@Index('gateway_key_secret_trust_idx', ['trustId', 'expiresAt'], { where: 'trust_id IS NOT NULL' })
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
    comment: 'End of the grace after a rotation, null if it was not rotated; end of a token.',
  })
  expiresAt!: Date | null;

  @Column('timestamptz', {
    name: 'last_used_at',
    nullable: true,
    comment: 'Updated with a delay of some seconds.',
  })
  lastUsedAt!: Date | null;

  @Column('text', { default: 'key', comment: 'key: a static secret; sign_in, exchange: a token.' })
  kind!: SecretKind;

  @Column('text', { nullable: true, comment: 'Whom a token was issued to; null for static secrets.' })
  subject!: string | null;

  @ForeignKey('Trust', { name: 'gateway_key_secret_trust_id_fkey', onDelete: 'CASCADE' })
  @Column('uuid', {
    name: 'trust_id',
    nullable: true,
    comment: 'The trust that a token was issued by, and ends with.',
  })
  trustId!: string | null;

  @Index('gateway_key_secret_sign_in_idx', { where: 'sign_in_id IS NOT NULL' })
  @ForeignKey('SignIn', { name: 'gateway_key_secret_sign_in_id_fkey', onDelete: 'CASCADE' })
  @Column('uuid', {
    name: 'sign_in_id',
    nullable: true,
    comment: 'The sign-in that a token was issued to, and ends with.',
  })
  signInId!: string | null;
}
