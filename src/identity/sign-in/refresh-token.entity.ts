import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { SignIn } from './sign-in.entity.js';

@Entity('refresh_token', { comment: 'Refresh tokens of sign-ins, of which only digests are stored.' })
@Index('refresh_token_used_idx', ['usedAt'], { where: 'used_at IS NOT NULL' })
export class RefreshToken {
  @PrimaryColumn('bytea', {
    primaryKeyConstraintName: 'refresh_token_pkey',
    comment: 'SHA-256 of the token.',
  })
  digest!: Buffer;

  @Index('refresh_token_sign_in_id_idx')
  @ForeignKey(() => SignIn, { name: 'refresh_token_sign_in_id_fkey', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'sign_in_id' })
  signInId!: string;

  @Column('timestamptz', { name: 'issued_at', default: () => 'now()' })
  issuedAt!: Date;

  @Column('timestamptz', {
    name: 'used_at',
    nullable: true,
    comment: 'When it was first used. It may be used again for a minute, and gives the same tokens.',
  })
  usedAt!: Date | null;
}
