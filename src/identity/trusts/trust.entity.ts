import { Column, Entity, ForeignKey, Index, PrimaryColumn, Unique, VersionColumn } from 'typeorm';
import { GatewayKey } from '../../keys/gateway-key.entity.js';

/** What the claims of a trust must name. */
export const TRUST_PRESETS = ['github', 'gitlab', 'kubernetes', 'aws', 'google', 'azure', 'oidc'] as const;
export type TrustPreset = (typeof TRUST_PRESETS)[number];

/** Accepted values by claim. A name that begins with `/` is a JSON pointer (RFC 6901). */
export type ClaimConditions = Readonly<Record<string, readonly (string | number | boolean)[]>>;

/** A public key as an issuer publishes it (RFC 7517), with the members of its type. */
export interface PublicKey {
  readonly kid?: string;
  readonly kty?: string;
  readonly use?: string;
  readonly alg?: string;
}

/** Public keys as an issuer publishes them. */
export interface PublicKeys {
  readonly keys: readonly PublicKey[];
}

/** An issuer of identity tokens, and what a token must say to be exchanged for a token of a key. */
@Entity('trust', {
  comment: 'Issuers whose identity tokens are exchanged for tokens of a key, and on what conditions.',
})
@Unique('trust_name_key', ['name'])
export class Trust {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'trust_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  @Index('trust_key_id_idx')
  @ForeignKey(() => GatewayKey, { name: 'trust_key_id_fkey' })
  @Column('uuid', { name: 'key_id' })
  keyId!: string;

  @Column('text', {
    comment: 'github, gitlab, kubernetes, aws, google, azure or oidc: what its claims must name.',
  })
  preset!: TrustPreset;

  @Column('text', { comment: 'The iss of accepted identity tokens.' })
  issuer!: string;

  @Column('text', { comment: 'The only aud of accepted identity tokens.' })
  audience!: string;

  @Column('jsonb', {
    nullable: true,
    comment: 'Public keys of the issuer; null: they are fetched from it.',
  })
  jwks!: PublicKeys | null;

  @Column('jsonb', { comment: 'Values by claim: each claim must have one of its values.' })
  claims!: ClaimConditions;

  @Column('boolean', {
    name: 'any_ref',
    default: false,
    comment: 'Whether any branch, tag, environment and workflow may use it.',
  })
  anyRef!: boolean;

  @Column('cidr', { array: true, nullable: true, comment: 'Networks that may use it; null: all.' })
  cidrs!: string[] | null;

  @Column('int', { name: 'token_minutes', comment: 'Lifetime of a token in minutes.' })
  tokenMinutes!: number;

  @Column('int', {
    name: 'longest_jwt_minutes',
    comment: 'Longest lifetime of an accepted identity token in minutes.',
  })
  longestJwtMinutes!: number;

  @Column('int', { name: 'max_live', comment: 'How many of its tokens may work at a time.' })
  maxLive!: number;

  @Column('boolean', { default: true, comment: 'If false, none of its tokens works.' })
  enabled!: boolean;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column('timestamptz', {
    name: 'last_used_at',
    nullable: true,
    comment: 'When it last issued a token; updated with a delay of some seconds.',
  })
  lastUsedAt!: Date | null;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;
}
