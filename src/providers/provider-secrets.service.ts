import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { type ProviderRow, providerView } from './provider-view.js';
import type { ProviderView, SecretState } from './providers.schema.js';
import { SecretBox, SecretBoxError } from '../platform/secret-box.js';

/** Encrypts and decrypts the secrets of stored providers, each bound to its row. */
@Injectable()
export class ProviderSecrets {
  private readonly box: SecretBox | null;

  /** @param env a gateway always has a master key; a command may run without one */
  constructor(@InjectSettings() env: Settings) {
    this.box = env.masterKey ? new SecretBox(env.masterKey, env.masterKeyPrevious) : null;
  }

  /** @throws ServiceError invalid without a master key */
  seal(providerId: string, secret: string): Buffer {
    return this.needed.seal(Buffer.from(secret), contextOf(providerId));
  }

  /** @throws SecretBoxError; ServiceError invalid without a master key */
  open(providerId: string, sealed: Buffer): string {
    return this.needed.open(sealed, contextOf(providerId)).toString();
  }

  isCurrent(sealed: Buffer): boolean {
    return this.needed.isCurrent(sealed);
  }

  /** The view of a row, with the state of its secret. */
  viewOf(row: ProviderRow): ProviderView {
    return providerView(row, this.stateOf(row));
  }

  private stateOf({ id, sealed_secret: sealed }: ProviderRow): SecretState {
    if (sealed === null) return 'none';
    try {
      this.open(id, sealed);
    } catch (error) {
      // Without a master key (a command) the state cannot be determined.
      if (error instanceof SecretBoxError) return 'unreadable';
    }
    return 'sealed';
  }

  private get needed(): SecretBox {
    if (this.box !== null) return this.box;
    throw new ServiceError(
      'invalid',
      'There is no master key to encrypt secrets with. Set MASTER_KEY to the key of the gateway, or DATA_DIR to its directory.',
    );
  }
}

/** Names table, row and column, so that a secret copied to another row cannot be decrypted there. */
function contextOf(providerId: string): string {
  return `provider:${providerId}:secret`;
}
