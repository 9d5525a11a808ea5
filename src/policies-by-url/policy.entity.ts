import { Check, Column, Entity, PrimaryColumn, Unique, UpdateDateColumn, VersionColumn } from 'typeorm';
import type { OnFailure, Sent } from './decision/rule.js';

/** What a policy is sent of a call. */
export const SENT = ['head', 'body'] as const satisfies readonly Sent[];
/** What happens to a call if its policy does not decide. */
export const ON_FAILURE = ['reject', 'allow'] as const satisfies readonly OnFailure[];

/** A URL that is asked whether a call is forwarded. */
@Entity('policy', { comment: 'URLs that are asked whether a call is forwarded.' })
@Unique('policy_name_key', ['name'])
@Check('policy_send_check', `send IN ('head', 'body')`)
@Check('policy_on_failure_check', `on_failure IN ('reject', 'allow')`)
export class StoredPolicy {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'policy_pkey' })
  id!: string;

  @Column('text')
  name!: string;

  /** Without what may be secret in it, see shownUrl(). */
  @Column('text', { name: 'shown_url' })
  shownUrl!: string;

  /** The URL and the secret, encrypted with MASTER_KEY and bound to this row. */
  @Column('bytea')
  sealed!: Buffer;

  @Column('uuid', {
    name: 'team_ids',
    array: true,
    nullable: true,
    comment: 'Teams whose calls it is asked about, beside those of key_ids; null in both: all calls.',
  })
  teamIds!: string[] | null;

  @Column('uuid', {
    name: 'key_ids',
    array: true,
    nullable: true,
    comment: 'Keys whose calls it is asked about, beside those of team_ids.',
  })
  keyIds!: string[] | null;

  @Column('text', {
    array: true,
    nullable: true,
    comment: 'Patterns of the models that it is asked about; null: all calls.',
  })
  models!: string[] | null;

  @Column('text', { comment: 'head: facts of the call; body: its body as well.' })
  send!: Sent;

  @Column('int', { name: 'timeout_ms' })
  timeoutMs!: number;

  @Column('text', {
    name: 'on_failure',
    comment: 'What happens to a call if its URL does not decide: reject or allow.',
  })
  onFailure!: OnFailure;

  @Column('int', {
    name: 'cache_seconds',
    comment: 'How long a decision counts for calls like it; 0: for none.',
  })
  cacheSeconds!: number;

  @Column('int', { name: 'run_order', comment: 'Policies are asked in ascending order.' })
  runOrder!: number;

  @Column('boolean', { default: true, comment: 'If false, it is not asked.' })
  enabled!: boolean;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @UpdateDateColumn({ type: 'timestamptz', name: 'updated_at', default: () => 'now()' })
  updatedAt!: Date;
}
