import { Injectable } from '@nestjs/common';
import { RowSecrets } from '../database/row-secrets.js';
import { type ProviderRow, providerView } from './provider-view.js';
import type { ProviderView } from './providers.schema.js';

/** Encrypts and decrypts the secrets of stored providers. */
@Injectable()
export class ProviderSecrets extends RowSecrets<string> {
  readonly table = 'provider';
  readonly name = 'name';
  readonly label = 'name';
  override readonly column = 'sealed_secret';
  protected override readonly place = 'secret';

  /** The view of a row, with the state of its secret. */
  viewOf(row: ProviderRow): ProviderView {
    const { id, sealed_secret: sealed } = row;
    if (sealed === null) return providerView(row, 'none');
    return providerView(row, this.isReadable(id, sealed) ? 'sealed' : 'unreadable');
  }

  protected override encode(secret: string): string {
    return secret;
  }

  protected override decode(text: string): string {
    return text;
  }
}
