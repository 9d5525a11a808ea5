import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { GatewayKey } from '../../keys/gateway-key.entity.js';
import { Person } from '../people/person.entity.js';

/** A sign-in of a person from one client. It has one access token and one refresh token after the other, until it ends. */
@Entity('sign_in', { comment: 'Sign-ins of people from a client: each is renewed until it ends.' })
@Index('sign_in_ended_idx', ['endedAt'], { where: 'ended_at IS NOT NULL' })
@Index('sign_in_expires_idx', ['expiresAt'], { where: 'ended_at IS NULL' })
export class SignIn {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'sign_in_pkey' })
  id!: string;

  @Index('sign_in_person_id_idx')
  @ForeignKey(() => Person, { name: 'sign_in_person_id_fkey' })
  @Column('uuid', { name: 'person_id' })
  personId!: string;

  @Index('sign_in_key_id_idx')
  @ForeignKey(() => GatewayKey, { name: 'sign_in_key_id_fkey' })
  @Column('uuid', { name: 'key_id', comment: 'The key of the person in the team that they chose.' })
  keyId!: string;

  @Column('text', { comment: 'The client, as it calls itself.' })
  surface!: string;

  @Column('inet', {
    name: 'client_ip',
    nullable: true,
    comment: 'Address of the client, as REQUEST_LOG_CLIENT says.',
  })
  clientIp!: string | null;

  @Column('text', {
    nullable: true,
    comment: 'User-Agent of the client, as REQUEST_LOG_CLIENT says.',
  })
  program!: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'last_renewed_at', default: () => 'now()' })
  lastRenewedAt!: Date;

  @Column('timestamptz', { name: 'expires_at', comment: 'When the person must sign in again.' })
  expiresAt!: Date;

  @Column('timestamptz', {
    name: 'ended_at',
    nullable: true,
    comment: 'When it ended; none of its tokens works since. Null: it has not.',
  })
  endedAt!: Date | null;

  @Column('text', { name: 'end_reason', nullable: true, comment: 'Why it ended.' })
  endReason!: string | null;

  @Index('sign_in_idp_sid_idx', { where: 'idp_sid IS NOT NULL' })
  @Column('text', {
    name: 'idp_sid',
    nullable: true,
    comment: 'Session at the OpenID provider that it began in; null if the provider names none.',
  })
  idpSid!: string | null;

  @Column('bytea', {
    name: 'idp_refresh',
    nullable: true,
    comment: 'Encrypted refresh token of the OpenID provider; null if there is none.',
  })
  idpRefresh!: Buffer | null;

  @Column('timestamptz', {
    name: 'idp_checked_at',
    default: () => 'now()',
    comment: 'When the OpenID provider last confirmed the person.',
  })
  idpCheckedAt!: Date;

  @Column('timestamptz', {
    name: 'renewing_until',
    nullable: true,
    comment: 'Until when a process that is asking the OpenID provider is waited for; null: none is.',
  })
  renewingUntil!: Date | null;

  @Column('timestamptz', {
    name: 'spent_refused_at',
    nullable: true,
    comment: 'When a refresh token that had been used before was last rejected; null: never.',
  })
  spentRefusedAt!: Date | null;
}
