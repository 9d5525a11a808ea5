import { Global, Module } from '@nestjs/common';
import { LIMITS_OF_KEYS } from '../auth/key-lookup.service.js';
import { PricesModule } from '../pricing/prices.module.js';
import { PoliciesModule } from '../proxy/policies/policies.module.js';
import { CHARGE_KEEPER } from '../request-log/writer/charge-keeper.js';
import { LedgerModule } from './ledger/ledger.module.js';
import { LedgerService } from './ledger/ledger.service.js';
import { RuleCache } from './ledger/rule-cache.js';
import { LimitPolicy } from './limit-policy.js';
import { ModelPolicy } from './model-policy.js';
import { StreamUsagePolicy } from './stream-usage-policy.js';

/**
 * Rules, limits and budgets of keys and teams that are checked before a call is forwarded. Global for the log writer,
 * which settles charges, and for the look-up of keys.
 */
@Global()
@Module({
  imports: [PoliciesModule, PricesModule, LedgerModule],
  providers: [
    ModelPolicy,
    StreamUsagePolicy,
    LimitPolicy,
    { provide: CHARGE_KEEPER, useExisting: LedgerService },
    { provide: LIMITS_OF_KEYS, useExisting: RuleCache }
  ],
  exports: [CHARGE_KEEPER, LIMITS_OF_KEYS]
})
export class LimitsModule {}
