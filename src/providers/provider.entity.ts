import { Check, Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import { PROVIDER_AUTHS, type ProviderAuth } from './provider.js';

/** A provider that people have added. Its secret is sealed (secret-box.ts) and bound to this row. */
@Entity('provider')
@Unique('provider_name_key', ['name'])
@Check('provider_name_check', `name ~ '^[a-z0-9][a-z0-9_-]{0,62}$' AND name <> 'default'`)
@Check('provider_auth_check', `auth IN (${PROVIDER_AUTHS.map((auth) => `'${auth}'`).join(', ')})`)
export class StoredProvider {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'provider_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  /** As normaliseProviderUrl gives it. */
  @Column('text')
  url!: string;

  @Column('text', { default: 'bearer' })
  auth!: ProviderAuth;

  /** null: it takes none, as local ones often do. */
  @Column('bytea', { name: 'sealed_secret', nullable: true })
  sealedSecret!: Buffer | null;

  /** Where calls to /v1 go whose key is bound to no provider; one at most. */
  @Index('provider_is_default_key', { unique: true, where: 'is_default' })
  @Column('boolean', { name: 'is_default', default: false })
  isDefault!: boolean;

  /** A disabled one is as good as absent. */
  @Column('boolean', { default: true })
  enabled!: boolean;

  /** Goes up with every change that people make, so that nobody overwrites what they have not seen. */
  @Column('int', { default: 1 })
  version!: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'updated_at', default: () => 'now()' })
  updatedAt!: Date;
}
