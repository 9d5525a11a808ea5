import { Column, Entity, PrimaryColumn } from 'typeorm';

const KEY = { primaryKeyConstraintName: 'refusal_pkey' };

/** The team and key of requests without a valid key. */
export const UNKNOWN_ID = '00000000-0000-0000-0000-000000000000';
/** The team and key of requests beyond the number of combinations that are counted. */
export const OTHER_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** How many requests the gateway rejected in a minute for one reason. */
@Entity('refusal', {
  comment: 'Requests that the gateway rejected, counted by minute, and after 2 days by hour.',
})
export class Refusal {
  @PrimaryColumn('timestamptz', { ...KEY })
  minute!: Date;

  @PrimaryColumn('uuid', { ...KEY, name: 'team_id' })
  teamId!: string;

  @PrimaryColumn('uuid', {
    ...KEY,
    name: 'key_id',
    comment: 'Zeros: no valid key was sent. ffffffff-…: keys beyond the number that is counted.',
  })
  keyId!: string;

  @PrimaryColumn('text', { ...KEY })
  code!: string;

  @PrimaryColumn('bigint', {
    ...KEY,
    name: 'rule_nr',
    default: 0,
    comment: 'The limit or budget that rejected it (limit_rule.nr); 0: none.',
  })
  ruleNr!: string;

  @PrimaryColumn('text', { ...KEY, default: '' })
  provider!: string;

  @PrimaryColumn('text', { ...KEY, default: '' })
  model!: string;

  @Column('bigint')
  calls!: string;

  @Column('uuid', { name: 'last_id', comment: 'The ID of the last of them, as the client got it.' })
  lastId!: string;

  @Column('timestamptz', { name: 'last_at' })
  lastAt!: Date;
}
