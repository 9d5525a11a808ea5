import { Injectable } from '@nestjs/common';
import { RowSecrets } from '../database/row-secrets.js';

/** Encrypts and decrypts where jobs are at their providers: with the secret of a provider, that gives what they made. */
@Injectable()
export class JobSecrets extends RowSecrets<string> {
  readonly table = 'provider_job';
  readonly name = "kind || ' ' || id";
  readonly label = "'job ' || id";
  override readonly column = 'sealed_id';
  protected override readonly place = 'sealed_id';
}
