import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { AdminToken } from '../access/admin-token.entity.js';
import { type Role, TEAMS_OF_ROLE } from '../access/role.js';

/** A session of the console. */
@Entity('admin_session', { comment: 'Sessions of the console. Only digests are stored.' })
@Check('admin_session_role_check', `role IN ('admin', 'viewer', 'lead', 'team')`)
@Check('admin_session_teams_check', TEAMS_OF_ROLE)
export class AdminSession {
  @PrimaryColumn('bytea', {
    primaryKeyConstraintName: 'admin_session_pkey',
    comment: 'HMAC-SHA-256 of the cookie, with ADMIN_TOKEN as the key.',
  })
  digest!: Buffer;

  @Index('admin_session_id_key', { unique: true })
  @Column('uuid', {
    default: () => 'admin_session_id()',
    comment: 'To list and end it; of no use as a cookie.',
  })
  id!: string;

  @Index('admin_session_user_id_idx')
  @Column('text', {
    name: 'user_id',
    nullable: true,
    comment: 'admin-token, token:<ID>, or sso:<issuer>#<sub>; null if an earlier version began it.',
  })
  userId!: string | null;

  @Column('bytea', {
    nullable: true,
    comment: 'HMAC-SHA-256 of the settings that it depends on; null if an earlier version began it.',
  })
  settings!: Buffer | null;

  @Index('admin_session_token_id_idx')
  @ForeignKey(() => AdminToken, { name: 'admin_session_token_id_fkey', onDelete: 'CASCADE' })
  @Column('uuid', {
    name: 'token_id',
    nullable: true,
    comment: 'Token that began it; null for ADMIN_TOKEN and single sign-on.',
  })
  tokenId!: string | null;

  @Column('text', { comment: 'Name of its user in the audit log.' })
  actor!: string;

  @Column('text')
  role!: Role;

  @Column('uuid', {
    array: true,
    nullable: true,
    comment: 'IDs of the teams of the roles lead and team; else null.',
  })
  teams!: string[] | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Index('admin_session_last_seen_at_idx')
  @Column('timestamptz', {
    name: 'last_seen_at',
    default: () => 'now()',
    comment: 'Updated with a delay of up to a minute.',
  })
  lastSeenAt!: Date;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt!: Date;

  @Index('admin_session_idp_sid_idx', { where: 'idp_sid IS NOT NULL' })
  @Column('text', {
    name: 'idp_sid',
    nullable: true,
    comment: 'Session at the OpenID provider that it began in; null if the provider names none.',
  })
  idpSid!: string | null;

  @Column('inet', { name: 'client_ip', nullable: true })
  clientIp!: string | null;
}
