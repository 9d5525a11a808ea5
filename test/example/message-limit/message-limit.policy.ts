import { BadRequestException } from '@nestjs/common';
import { CallPolicy, type PolicyCall } from '../../../src/index.js';

const MOST = 100;

/** Rejects chat completions with too many messages. */
@CallPolicy()
export class MessageLimitPolicy implements CallPolicy {
  needsBody(call: PolicyCall): boolean {
    return call.endpoint === '/v1/chat/completions';
  }

  admit(call: PolicyCall): void {
    if (!this.needsBody(call)) return;
    const { messages } = call.requireBody();
    if (!Array.isArray(messages) || messages.length > MOST)
      throw new BadRequestException(`Send at most ${MOST} messages.`);
  }
}
