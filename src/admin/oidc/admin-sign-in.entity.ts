import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A sign-in at the OpenID provider that a browser has come back from: its cookie is of no more use, on any replica. */
@Entity('admin_sign_in', { comment: 'Sign-ins at the OpenID provider that have been used.' })
export class AdminSignIn {
  @PrimaryColumn('bytea', {
    primaryKeyConstraintName: 'admin_sign_in_pkey',
    comment: 'SHA-256 of its state.',
  })
  digest!: Buffer;

  @Index('admin_sign_in_expires_at_idx')
  @Column('timestamptz', {
    name: 'expires_at',
    comment: 'Well after the cookie of the sign-in.',
  })
  expiresAt!: Date;
}
