import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { type ProviderRow, providerView } from './provider-view.js';
import type { ProviderView, SecretState } from './providers.schema.js';
import { SecretBox, SecretBoxError } from '../platform/secret-box.js';

/** Seals and opens the secrets of stored providers, each bound to its row. */
@Injectable()
export class ProviderSecrets {
  private readonly box: SecretBox | null;

  /** @param env a gateway always has a master key; a command may be run where there is none */
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

  /** What people see of a row; of its secret, whether it can be opened. */
  viewOf(row: ProviderRow): ProviderView {
    return providerView(row, this.stateOf(row));
  }

  private stateOf({ id, sealed_secret: sealed }: ProviderRow): SecretState {
    if (sealed === null) return 'none';
    try {
      this.open(id, sealed);
    } catch (error) {
      // Where there is no master key at all (a command) nothing can be said of it.
      if (error instanceof SecretBoxError) return 'unreadable';
    }
    return 'sealed';
  }

  private get needed(): SecretBox {
    if (this.box !== null) return this.box;
    throw new ServiceError(
      'invalid',
      'There is no master key here to seal secrets with. Set MASTER_KEY as the gateway has it, or DATA_DIR to its folder.',
    );
  }
}

/** Table, row and column: a secret that somebody copies to another row does not open there. */
function contextOf(providerId: string): string {
  return `provider:${providerId}:secret`;
}
