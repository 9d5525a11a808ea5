import { Check, Column, Entity, Index, PrimaryColumn, Unique, VirtualColumn } from 'typeorm';
import { type Role, TEAMS_OF_ROLE } from './role.js';

/** A token of the admin API beside ADMIN_TOKEN, for a person or a program. */
@Entity('admin_token', { comment: 'Tokens of the admin API beside ADMIN_TOKEN. Only digests are stored.' })
@Unique('admin_token_name_key', ['name'])
@Check('admin_token_role_check', `role IN ('admin', 'viewer', 'lead', 'team', 'metrics')`)
@Check('admin_token_teams_check', TEAMS_OF_ROLE)
export class AdminToken {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'admin_token_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  @Index('admin_token_digest_key', { unique: true })
  @Column('bytea', { comment: 'SHA-256 of the token.' })
  digest!: Buffer;

  @Column('text', { comment: 'First characters of the token, to recognise it.' })
  prefix!: string;

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

  @Column('timestamptz', { name: 'expires_at', nullable: true, comment: 'Null if the token never expires.' })
  expiresAt!: Date | null;

  @Column('timestamptz', {
    name: 'last_used_at',
    nullable: true,
    comment: 'Updated with a delay of up to a minute.',
  })
  lastUsedAt!: Date | null;

  /** Those of `teams` that there are, by name; null if the token has no teams. */
  @VirtualColumn('json', {
    query: (token) => `
      SELECT CASE WHEN ${token}.teams IS NOT NULL THEN COALESCE(
        (SELECT json_agg(json_build_object('id', id, 'name', name) ORDER BY name) FROM team WHERE id = ANY (${token}.teams)),
        '[]') END`,
  })
  namedTeams!: { id: string; name: string }[] | null;
}
