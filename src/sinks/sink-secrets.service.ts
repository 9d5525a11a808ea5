import { Injectable } from '@nestjs/common';
import { RowSecrets } from '../database/row-secrets.js';

/** What is secret of a sink. */
export interface SinkAccess {
  url: string;
  /** `user:password`, a token, or what the kind of sink expects; null: none. */
  secret: string | null;
}

/** Encrypts and decrypts what is secret of sinks. */
@Injectable()
export class SinkSecrets extends RowSecrets<SinkAccess> {
  readonly table = 'sink';
  readonly name = 'name';
  readonly label = `'sink ' || name`;
}
