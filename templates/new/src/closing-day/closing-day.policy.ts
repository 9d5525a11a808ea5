import { ForbiddenException, Injectable } from '@nestjs/common';
import { CallPolicies, type CallPolicy, type PolicyCall } from 'postern';

/** Rejects calls to the large models on Sundays (UTC). */
@Injectable()
export class ClosingDayPolicy implements CallPolicy {
  constructor(policies: CallPolicies) {
    policies.register(this);
  }

  needsBody(call: PolicyCall): boolean {
    return call.modelSource === 'body';
  }

  admit(call: PolicyCall): void {
    if (call.modelSource === 'list' || call.modelSource === 'none' || new Date().getUTCDay() !== 0) return;
    if (call.requireModel().startsWith('gpt-5-pro'))
      throw new ForbiddenException('gpt-5-pro is not available on Sundays.');
  }
}
