import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique, VersionColumn } from 'typeorm';
import { Annotated } from '../teams/annotations.js';
import { type OnDisconnect } from '../providers/on-disconnect.js';
import { STREAM_USAGE_COMMENT, type StreamUsage } from '../teams/model-rules.js';
import { Team } from '../teams/team.entity.js';
import type { KeyCache } from './key-cache-settings.js';

/** Which endpoints a key may use. */
export type EndpointRule = 'inference' | 'own' | 'all';
export const ENDPOINT_RULES = ['inference', 'own', 'all'] as const satisfies readonly EndpointRule[];

/** What happens to calls with an `Idempotency-Key`. */
export type IdempotencyMode = 'forward' | 'replay';
export const IDEMPOTENCY_MODES = ['forward', 'replay'] as const satisfies readonly IdempotencyMode[];

/** How a key came about: somebody created it, or a person signed in from a client for the first time. */
export type KeyOrigin = 'manual' | 'sign_in';
export const KEY_ORIGINS = ['manual', 'sign_in'] as const satisfies readonly KeyOrigin[];

/** Settings that the API shows as they are stored. */
export const SHOWN_SETTINGS = [
  'disabled',
  'providers',
  'endpoints',
  'idempotency',
  'websockets',
  'models',
  'stream_usage',
  'on_disconnect',
] as const;

/** Settings that calls are decided by, as they are stored: members of a grant. */
export interface GrantedSettings {
  endpoints: EndpointRule;
  idempotency: IdempotencyMode;
  /** True if the key may open WebSockets. */
  websockets: boolean;
}
export const GRANTED_SETTINGS = [
  'endpoints',
  'idempotency',
  'websockets',
] as const satisfies readonly (keyof GrantedSettings)[];

/** A gateway key of a team, with its limits. It has one or more secrets; rotation adds a secret and keeps this row. */
@Entity('gateway_key', {
  comment: 'Gateway keys with their limits; their secrets are in gateway_key_secret.',
})
@Unique('gateway_key_team_id_name_key', ['teamId', 'name'])
@Check('gateway_key_endpoints_check', `endpoints IN ('inference', 'own', 'all')`)
@Check('gateway_key_idempotency_check', `idempotency IN ('forward', 'replay')`)
@Check('gateway_key_stream_usage_check', `stream_usage IN ('as_sent', 'require', 'ask')`)
@Check('gateway_key_on_disconnect_check', `on_disconnect IN ('cancel', 'finish')`)
@Check('gateway_key_origin_check', `origin IN ('manual', 'sign_in')`)
@Check('gateway_key_person_check', `origin <> 'sign_in' OR person_id IS NOT NULL`)
@Index('gateway_key_sign_in_key', ['personId', 'teamId'], {
  unique: true,
  where: `origin = 'sign_in' AND revoked_at IS NULL`,
})
export class GatewayKey extends Annotated implements GrantedSettings {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'gateway_key_pkey' })
  id!: string;

  @Index('gateway_key_team_id_idx')
  @ForeignKey(() => Team, { name: 'gateway_key_team_id_fkey' })
  @Column('uuid', { name: 'team_id' })
  teamId!: string;

  @Column('text', { comment: 'Unique within the team.' })
  name!: string;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'expires_at', nullable: true, comment: 'Null if the key never expires.' })
  expiresAt!: Date | null;

  @Index('gateway_key_latest_expiry_idx', { where: 'latest_expiry IS NOT NULL' })
  @Column('timestamptz', {
    name: 'latest_expiry',
    nullable: true,
    comment: 'Until when sign-ins of its owner move expires_at; null if they do not.',
  })
  latestExpiry!: Date | null;

  @Column('timestamptz', { name: 'revoked_at', nullable: true, comment: 'Null if the key is not revoked.' })
  revokedAt!: Date | null;

  @Column('boolean', { default: false })
  disabled!: boolean;

  @Column('text', {
    array: true,
    nullable: true,
    comment: 'Names of the providers it may use; null for all.',
  })
  providers!: string[] | null;

  @Column('text', {
    default: 'inference',
    comment:
      'inference: only the inference endpoints; own: every path at providers of its team; all: every path.',
  })
  endpoints!: EndpointRule;

  @Column('text', {
    default: 'forward',
    comment: 'forward: Idempotency-Key is passed on; replay: repeated calls get the stored response.',
  })
  idempotency!: IdempotencyMode;

  @Column('boolean', { default: false, comment: 'Whether it may open WebSockets.' })
  websockets!: boolean;

  @Column('text', {
    array: true,
    nullable: true,
    comment: 'Patterns of model names that it may use; null for all.',
  })
  models!: string[] | null;

  @Column('text', { name: 'stream_usage', default: 'as_sent', comment: STREAM_USAGE_COMMENT })
  streamUsage!: StreamUsage;

  @Column('text', {
    name: 'on_disconnect',
    nullable: true,
    comment:
      'cancel: a call ends with its client; finish: its response is read to the end; null: as the provider says.',
  })
  onDisconnect!: OnDisconnect | null;

  @Index('gateway_key_owner_idx', { where: 'owner IS NOT NULL' })
  @Column('text', {
    nullable: true,
    comment: 'Member of the team who created it for themselves; null for other keys.',
  })
  owner!: string | null;

  @Column('text', {
    name: 'owner_id',
    nullable: true,
    comment:
      'The owner for good, whatever the name: token:<ID> or sso:<issuer>#<sub>; null for other keys, and those of earlier versions.',
  })
  ownerId!: string | null;

  @Index('gateway_key_person_idx', { where: 'person_id IS NOT NULL' })
  @ForeignKey('Person', { name: 'gateway_key_person_id_fkey' })
  @Column('uuid', {
    name: 'person_id',
    nullable: true,
    comment: 'The person whose it is; null for other keys.',
  })
  personId!: string | null;

  @Column('text', {
    default: 'manual',
    comment:
      'manual: somebody created it; sign_in: it was created for the tokens of a person, at their first sign-in.',
  })
  origin!: KeyOrigin;

  @Column('jsonb', {
    nullable: true,
    comment: 'The response cache: its ttl_seconds, and with whom it is shared; null: none.',
  })
  cache!: KeyCache | null;

  @Column('timestamptz', {
    name: 'tokens_valid_from',
    nullable: true,
    comment: 'Tokens that were issued before have ended; null: none has.',
  })
  tokensValidFrom!: Date | null;

  @Column('timestamptz', {
    name: 'tokens_used_at',
    nullable: true,
    comment: 'When one of its tokens was last used; updated with a delay of some seconds.',
  })
  tokensUsedAt!: Date | null;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;
}
