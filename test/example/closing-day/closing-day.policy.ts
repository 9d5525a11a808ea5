import { ForbiddenException } from '@nestjs/common';
import { CallPolicy, type PolicyCall } from '../../../src/index.js';

/** Rejects calls to the large models on Sundays (UTC). */
@CallPolicy()
export class ClosingDayPolicy implements CallPolicy {
  needsBody(call: PolicyCall): boolean {
    return call.modelSource === 'body';
  }

  admit(call: PolicyCall): void {
    if (call.modelSource === 'list' || call.modelSource === 'none' || new Date().getUTCDay() !== 0) return;
    if (call.requireModel().startsWith('gpt-5-pro'))
      throw new ForbiddenException('gpt-5-pro is not available on Sundays.');
  }
}
