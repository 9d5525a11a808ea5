import {
  Check,
  Column,
  Entity,
  ForeignKey,
  Index,
  PrimaryColumn,
  Unique,
  UpdateDateColumn,
  VersionColumn,
} from 'typeorm';
import { type OnDisconnect } from './on-disconnect.js';
import { type AuthSettings, PROVIDER_AUTHS, type ProviderAuth } from './credentials/auth-kinds.js';

/** A stored provider. Its secret is encrypted (secret-box.ts) and bound to this row. */
@Entity('provider', { comment: 'Stored providers. The one of PROVIDER_URL is not among them.' })
@Unique('provider_name_key', ['name'])
@Check('provider_name_check', `name ~ '^[a-z0-9][a-z0-9_-]{0,62}$' AND name <> 'default'`)
@Check('provider_auth_check', `auth IN (${PROVIDER_AUTHS.map((auth) => `'${auth}'`).join(', ')})`)
@Check('provider_on_disconnect_check', `on_disconnect IN ('cancel', 'finish')`)
export class StoredProvider {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'provider_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  /** In the form that normaliseProviderUrl() returns. */
  @Column('text', { comment: 'Base URL without /v1.' })
  url!: string;

  @Column('text', {
    default: 'bearer',
    comment:
      'How the secret is used: bearer, the name of a header, aws-sigv4, google or oauth2. openai-federation, anthropic-federation: an identity token is exchanged. client: callers send their own credential.',
  })
  auth!: ProviderAuth;

  @Column('jsonb', {
    name: 'auth_settings',
    nullable: true,
    comment:
      'What the other ways of authentication need besides the secret, or in its place; null for bearer, headers and client.',
  })
  authSettings!: AuthSettings | null;

  @Column('bytea', {
    name: 'sealed_secret',
    nullable: true,
    comment: 'The secret, encrypted with MASTER_KEY and bound to this row; null if it needs none.',
  })
  sealedSecret!: Buffer | null;

  /** True for the default provider of /v1; at most one. */
  @Index('provider_is_default_key', { unique: true, where: 'is_default' })
  @Column('boolean', {
    name: 'is_default',
    default: false,
    comment: 'Calls to /v1 go there, unless PROVIDER_URL is set.',
  })
  isDefault!: boolean;

  @Column('boolean', { default: true, comment: 'Calls to a disabled provider are rejected.' })
  enabled!: boolean;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;

  /** Name of the price list for its models; null if only custom prices apply. */
  @Column('text', { nullable: true })
  catalog!: string | null;

  @Column('text', {
    name: 'on_disconnect',
    default: 'cancel',
    comment: 'cancel: the call ends with its client; finish: its response is read to the end.',
  })
  onDisconnect!: OnDisconnect;

  @ForeignKey('Team', { name: 'provider_team_id_fkey' })
  @Index('provider_team_id_idx')
  @Column('uuid', {
    name: 'team_id',
    nullable: true,
    comment: 'The only team that may use it; null for all teams.',
  })
  teamId!: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @UpdateDateColumn({ type: 'timestamptz', name: 'updated_at' })
  updatedAt!: Date;
}
