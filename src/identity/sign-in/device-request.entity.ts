import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { GatewayKey } from '../../keys/gateway-key.entity.js';
import { Person } from '../people/person.entity.js';
import { SignIn } from './sign-in.entity.js';

export type DeviceRequestState = 'pending' | 'approved' | 'denied' | 'redeemed';

/** A request of a client to be signed in (RFC 8628): it polls with one code, and a person types the other in a browser. */
@Entity('device_request', {
  comment: 'Requests of clients to be signed in, which a person confirms in a browser.',
})
@Unique('device_request_device_digest_key', ['deviceDigest'])
@Unique('device_request_user_code_digest_key', ['userCodeDigest'])
@Check('device_request_state_check', `state IN ('pending', 'approved', 'denied', 'redeemed')`)
@Index('device_request_network_idx', ['clientNetwork', 'createdAt'])
@Index('device_request_approval_idx', ['approvalDigest'], { where: 'approval_digest IS NOT NULL' })
@Index('device_request_sign_in_idx', ['signInId'], { where: 'sign_in_id IS NOT NULL' })
@Index('device_request_person_idx', ['personId'], { where: 'person_id IS NOT NULL' })
export class DeviceRequest {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'device_request_pkey' })
  id!: string;

  @Column('bytea', { name: 'device_digest', comment: 'SHA-256 of the code that the client polls with.' })
  deviceDigest!: Buffer;

  @Column('bytea', { name: 'user_code_digest', comment: 'Keyed digest of the code that the person types.' })
  userCodeDigest!: Buffer;

  @Column('text', { comment: 'The client, as it calls itself.' })
  surface!: string;

  @Column('inet', {
    name: 'client_ip',
    nullable: true,
    comment: 'Address of the client, as REQUEST_LOG_CLIENT says.',
  })
  clientIp!: string | null;

  @Column('text', {
    name: 'client_network',
    comment: 'Keyed digest of the network of the client, to limit the requests of one.',
  })
  clientNetwork!: string;

  @Column('text', {
    nullable: true,
    comment: 'User-Agent of the client, as REQUEST_LOG_CLIENT says.',
  })
  program!: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Index('device_request_expires_idx')
  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date;

  @Column('timestamptz', { name: 'last_poll_at', nullable: true })
  lastPollAt!: Date | null;

  @Column('int', { name: 'interval_s', comment: 'Seconds between two polls.' })
  intervalS!: number;

  @Column('text', { default: 'pending', comment: 'pending, approved, denied or redeemed.' })
  state!: DeviceRequestState;

  @Column('timestamptz', {
    name: 'opened_at',
    nullable: true,
    comment: 'When its code was first typed; null: it has not been.',
  })
  openedAt!: Date | null;

  @ForeignKey(() => Person, { name: 'device_request_person_id_fkey' })
  @Column('uuid', {
    name: 'person_id',
    nullable: true,
    comment: 'Who signed in at the OpenID provider with this code last.',
  })
  personId!: string | null;

  @Column('uuid', {
    name: 'team_ids',
    array: true,
    nullable: true,
    comment: 'Teams that this person may choose.',
  })
  teamIds!: string[] | null;

  @Column('bytea', {
    name: 'approval_digest',
    nullable: true,
    comment: 'SHA-256 of what the browser of this person must show to confirm it.',
  })
  approvalDigest!: Buffer | null;

  @Column('text', {
    name: 'idp_sid',
    nullable: true,
    comment: 'Session at the OpenID provider; null if the provider names none.',
  })
  idpSid!: string | null;

  @Column('bytea', {
    name: 'idp_refresh',
    nullable: true,
    comment: 'Encrypted refresh token of the OpenID provider; null if there is none.',
  })
  idpRefresh!: Buffer | null;

  @ForeignKey(() => GatewayKey, { name: 'device_request_key_id_fkey' })
  @Column('uuid', {
    name: 'key_id',
    nullable: true,
    comment: 'The key of the person in the team that they chose.',
  })
  keyId!: string | null;

  @Column('timestamptz', { name: 'redeemed_at', nullable: true })
  redeemedAt!: Date | null;

  @ForeignKey(() => SignIn, { name: 'device_request_sign_in_id_fkey', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'sign_in_id', nullable: true })
  signInId!: string | null;
}
