import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import { required, type Settings } from '../config/settings.js';
import { SecretBox } from '../platform/secret-box.js';
import type { Holder } from './idempotency-records.js';
import { decodeAnswer, encodeAnswer, type StoredAnswer } from './stored-response.js';

/** Seals answers at rest, for they hold content. One opens only in its own record, for the call that left it. */
@Injectable()
export class AnswerBox {
  private readonly box: SecretBox;

  constructor(@InjectSettings() env: Settings) {
    this.box = new SecretBox(required(env, 'masterKey'), env.masterKeyPrevious);
  }

  seal(holder: Holder, answer: StoredAnswer): Buffer {
    return this.box.seal(encodeAnswer(answer), contextOf(holder));
  }

  /** @throws SecretBoxError */
  open(holder: Holder, sealed: Buffer): StoredAnswer {
    return decodeAnswer(this.box.open(sealed, contextOf(holder)));
  }
}

function contextOf({ id, callId }: Holder): string {
  return `idempotency:${id.toString('hex')}:${callId}`;
}
