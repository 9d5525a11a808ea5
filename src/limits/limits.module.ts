import { Module } from '@nestjs/common';
import { PoliciesModule } from '../proxy/policies/policies.module.js';
import { ModelPolicy } from './model-policy.js';
import { StreamUsagePolicy } from './stream-usage-policy.js';

/** Rules of keys and teams that are checked before a call is forwarded. */
@Module({
  imports: [PoliciesModule],
  providers: [ModelPolicy, StreamUsagePolicy]
})
export class LimitsModule {}
