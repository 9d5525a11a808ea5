import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { SecretBox } from '../platform/secret-box.js';

/** What is secret of a sink. */
export interface SinkAccess {
  url: string;
  /** `user:password`, a token, or what the kind of sink expects; null: none. */
  secret: string | null;
}

/** Encrypts and decrypts what is secret of sinks, each bound to its row. */
@Injectable()
export class SinkSecrets {
  private readonly box: SecretBox | null;

  /** @param env a gateway always has a master key; a command may run without one */
  constructor(@InjectSettings() env: Settings) {
    this.box = env.masterKey ? new SecretBox(env.masterKey, env.masterKeyPrevious) : null;
  }

  /** @throws ServiceError invalid without a master key */
  seal(id: string, access: SinkAccess): Buffer {
    return this.needed.seal(Buffer.from(JSON.stringify(access)), contextOf(id));
  }

  /** @throws SecretBoxError; ServiceError invalid without a master key */
  open(id: string, sealed: Buffer): SinkAccess {
    return JSON.parse(this.needed.open(sealed, contextOf(id)).toString()) as SinkAccess;
  }

  isCurrent(sealed: Buffer): boolean {
    return this.needed.isCurrent(sealed);
  }

  private get needed(): SecretBox {
    if (this.box !== null) return this.box;
    throw new ServiceError(
      'invalid',
      'There is no master key to encrypt sinks with. Set MASTER_KEY to the key of the gateway, or DATA_DIR to its directory.',
    );
  }
}

/** Names table, row and column, so that what is copied to another row cannot be decrypted there. */
function contextOf(id: string): string {
  return `sink:${id}:sealed`;
}
