import { Entity, PrimaryColumn, VersionColumn, VirtualColumn } from 'typeorm';
import { type RuleValues, rulesSql } from '../limit-rules/stored-rules.js';

/** The limits of the installation. There is one row, whose ID is zeros. */
@Entity('installation_limits', {
  comment: 'One row: the version of the limits of the installation, which are in limit_rule.',
})
export class InstallationLimitsRow {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'installation_limits_pkey' })
  id!: string;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1, comment: 'Increases with every change by an actor.' })
  version!: number;

  /** From their own table, in the query that reads the version. */
  @VirtualColumn('jsonb', { query: (row) => rulesSql(`${row}.id`) })
  rules!: RuleValues[] | null;
}
