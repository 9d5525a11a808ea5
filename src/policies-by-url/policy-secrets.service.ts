import { Injectable } from '@nestjs/common';
import { RowSecrets } from '../database/row-secrets.js';

/** What is secret of a policy. */
export interface PolicyTarget {
  url: string;
  /** Signs requests, `whsec_…`. */
  secret: string;
}

/** Encrypts and decrypts what is secret of policies. */
@Injectable()
export class PolicySecrets extends RowSecrets<PolicyTarget> {
  readonly table = 'policy';
  readonly name = 'name';
  readonly label = `'policy ' || name`;
}
