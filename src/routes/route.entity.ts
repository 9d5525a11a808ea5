import {
  Check,
  Column,
  Entity,
  Index,
  PrimaryColumn,
  Unique,
  UpdateDateColumn,
  VersionColumn,
} from 'typeorm';

/** How a route chooses among its targets. */
export const STRATEGIES = ['order', 'spread'] as const;
export type Strategy = (typeof STRATEGIES)[number];

/** What a route sends a call to another target for. */
export const RETRY_CAUSES = ['connect', 'refused', 'failed'] as const;
export type RetryCause = (typeof RETRY_CAUSES)[number];

/** Which API the targets of a route have in common. */
export const DIALECTS = ['openai', 'anthropic', 'any'] as const;
export type Dialect = (typeof DIALECTS)[number];

/** A target as it is stored: a provider, and its names of models where they differ from those that clients send. */
export interface StoredTarget {
  provider: string;
  models: Record<string, string> | null;
}

const oneOf = (words: readonly string[]) => words.map((word) => `'${word}'`).join(', ');

/** A route. Its name is in one space with those of providers; triggers see to it. */
@Entity('route', { comment: 'Routes: providers made of providers.' })
@Unique('route_name_key', ['name'])
@Check('route_name_check', `name ~ '^[a-z0-9][a-z0-9_-]{0,62}$' AND name <> 'default'`)
@Check('route_strategy_check', `strategy IN (${oneOf(STRATEGIES)})`)
@Check('route_retry_on_check', `retry_on <@ ARRAY[${oneOf(RETRY_CAUSES)}]`)
@Check('route_dialect_check', `dialect IN (${oneOf(DIALECTS)})`)
export class StoredRoute {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'route_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  @Column('jsonb', { comment: 'Providers, in order, and their own names of models.' })
  targets!: StoredTarget[];

  @Column('text', { comment: 'How a target is chosen.' })
  strategy!: Strategy;

  @Column('text', { name: 'retry_on', array: true, comment: 'What a call is sent to another target for.' })
  retryOn!: RetryCause[];

  @Column('smallint', { name: 'max_attempts', comment: 'Targets that a call is sent to at most.' })
  maxAttempts!: number;

  @Column('text', { comment: 'The API that all targets have.' })
  dialect!: Dialect;

  /** At most one. It counts more than a stored default provider, and less than PROVIDER_URL. */
  @Index('route_is_default_key', { unique: true, where: 'is_default' })
  @Column('boolean', {
    name: 'is_default',
    default: false,
    comment: 'Calls to /v1 use it, unless PROVIDER_URL is set.',
  })
  isDefault!: boolean;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @UpdateDateColumn({ type: 'timestamptz', name: 'updated_at' })
  updatedAt!: Date;
}
