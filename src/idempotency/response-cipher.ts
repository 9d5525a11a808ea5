import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import { required, type Settings } from '../config/settings.js';
import { SecretBox } from '../platform/secret-box.js';
import type { Holder } from './idempotency-records.js';
import { decodeResponse, encodeResponse, type StoredResponse } from './stored-response.js';

/** Encrypts stored responses, which contain content. Each is bound to its record and to the call that stored it. */
@Injectable()
export class ResponseCipher {
  private readonly box: SecretBox;

  constructor(@InjectSettings() env: Settings) {
    this.box = new SecretBox(required(env, 'masterKey'), env.masterKeyPrevious);
  }

  seal(holder: Holder, response: StoredResponse): Buffer {
    return this.box.seal(encodeResponse(response), contextOf(holder));
  }

  /** @throws SecretBoxError */
  open(holder: Holder, sealed: Buffer): StoredResponse {
    return decodeResponse(this.box.open(sealed, contextOf(holder)));
  }
}

function contextOf({ id, callId }: Holder): string {
  return `idempotency:${id.toString('hex')}:${callId}`;
}
