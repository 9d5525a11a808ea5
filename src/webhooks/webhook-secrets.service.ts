import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { SecretBox } from '../platform/secret-box.js';
import { SECRET_PREFIX } from './webhook-message.js';

/** What is secret of a webhook. */
export interface WebhookTarget {
  /** URLs of receivers such as Slack are credentials. */
  url: string;
  /** Signs messages, `whsec_…`; null for a format without signatures. */
  secret: string | null;
}

/** 32 bytes, of the 24 to 64 that Standard Webhooks allow. */
const SECRET_BYTES = 32;

export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** Encrypts and decrypts what is secret of webhooks, each bound to its row. */
@Injectable()
export class WebhookSecrets {
  private readonly box: SecretBox | null;

  /** @param env a gateway always has a master key; a command may run without one */
  constructor(@InjectSettings() env: Settings) {
    this.box = env.masterKey ? new SecretBox(env.masterKey, env.masterKeyPrevious) : null;
  }

  /** @throws ServiceError invalid without a master key */
  seal(id: string, target: WebhookTarget): Buffer {
    return this.needed.seal(Buffer.from(JSON.stringify(target)), contextOf(id));
  }

  /** @throws SecretBoxError; ServiceError invalid without a master key */
  open(id: string, sealed: Buffer): WebhookTarget {
    return JSON.parse(this.needed.open(sealed, contextOf(id)).toString()) as WebhookTarget;
  }

  isCurrent(sealed: Buffer): boolean {
    return this.needed.isCurrent(sealed);
  }

  private get needed(): SecretBox {
    if (this.box !== null) return this.box;
    throw new ServiceError(
      'invalid',
      'There is no master key to encrypt webhooks with. Set MASTER_KEY to the key of the gateway, or DATA_DIR to its directory.',
    );
  }
}

/** Names table, row and column, so that what is copied to another row cannot be decrypted there. */
function contextOf(id: string): string {
  return `webhook:${id}:sealed`;
}
