import { Column, Entity, PrimaryColumn, Unique, VersionColumn } from 'typeorm';

/** A person is an ID at the OpenID provider, never an e-mail address: these are given to other people again. */
@Entity('person', { comment: 'People who sign in by single sign-on, by their ID at the OpenID provider.' })
@Unique('person_issuer_subject_key', ['issuer', 'subject'])
export class Person {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'person_pkey' })
  id!: string;

  @Column('text', { comment: 'The OpenID provider.' })
  issuer!: string;

  @Column('text', {
    comment: 'The ID of the person there. It is never given to another person; e-mail addresses are.',
  })
  subject!: string;

  @Column('text', { comment: 'What the provider calls the person: for people to read only.' })
  name!: string;

  @Column('text', {
    nullable: true,
    comment: 'E-mail address that the provider vouched for at the last sign-in; null if it did not.',
  })
  email!: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @Column('timestamptz', { name: 'last_sign_in_at', nullable: true })
  lastSignInAt!: Date | null;

  @Column('timestamptz', {
    name: 'ended_at',
    nullable: true,
    comment: 'Since when the person may not sign in, and none of their tokens works; null: they may.',
  })
  endedAt!: Date | null;

  @Column('timestamptz', {
    name: 'reopened_at',
    nullable: true,
    comment:
      'When they were last allowed in again. A key of theirs that was revoked before then no longer stops a sign-in.',
  })
  reopenedAt!: Date | null;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;
}
