import { Check, Column, Entity, PrimaryColumn, Unique, VersionColumn } from 'typeorm';
import type { Tier } from './cost.js';
import type { ExtraPrices } from './costs/units.js';

export const PRICE_SOURCES = ['catalog', 'custom'] as const;
export type PriceSource = (typeof PRICE_SOURCES)[number];

const USD = { precision: 12, scale: 6, nullable: true };

/** What a model costs from one time on. `pg` returns the amounts as exact text. */
@Entity('price', { comment: 'Prices of models in USD per million tokens, of the catalogue and of your own.' })
@Unique('price_catalog_model_effective_from_key', ['catalog', 'model', 'effectiveFrom', 'source'])
@Check('price_source_check', `source IN ('catalog', 'custom')`)
export class Price {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'price_pkey' })
  id!: string;

  /** The name of a price list or of a provider. */
  @Column('text')
  catalog!: string;

  /** Exact, or the start of a name and a final asterisk. */
  @Column('text')
  model!: string;

  @Column('timestamptz', { name: 'effective_from' })
  effectiveFrom!: Date;

  @Column('numeric', USD)
  input!: string | null;

  @Column('numeric', { name: 'cached_input', ...USD })
  cachedInput!: string | null;

  @Column('numeric', { name: 'cache_write', ...USD })
  cacheWrite!: string | null;

  @Column('numeric', { name: 'cache_write_1h', ...USD })
  cacheWrite1h!: string | null;

  @Column('numeric', USD)
  output!: string | null;

  @Column('numeric', { name: 'per_call', ...USD })
  perCall!: string | null;

  @Column('jsonb', { nullable: true })
  extra!: ExtraPrices | null;

  @Column('jsonb', { nullable: true })
  tiers!: Tier[] | null;

  /** The part of `extra` that versions without this column cannot compute with, see PriceParts. */
  @Column('jsonb', {
    nullable: true,
    comment:
      'Like extra: USD per thousand images, pages, seconds, characters, file searches and code sessions.',
  })
  units!: ExtraPrices | null;

  /** The same part of `tiers`. */
  @Column('jsonb', {
    name: 'unit_tiers',
    nullable: true,
    comment: 'Like tiers: those with such units, a factor, a size or a quality.',
  })
  unitTiers!: Tier[] | null;

  /** `catalog`: taken from the catalog, and never changed by people. */
  @Column('text')
  source!: PriceSource;

  @Column('text', { nullable: true })
  note!: string | null;

  /** Increases with every change by an actor, for If-Match. */
  @VersionColumn({ default: 1 })
  version!: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;
}
