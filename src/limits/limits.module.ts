import { Global, Module } from '@nestjs/common';
import { AuthModule } from '../auth/auth.module.js';
import { PricesModule } from '../pricing/prices.module.js';
import { PoliciesModule } from '../proxy/policies/policies.module.js';
import { CHARGE_KEEPER } from '../request-log/writer/charge-keeper.js';
import { LedgerModule } from './ledger/ledger.module.js';
import { LedgerService } from './ledger/ledger.service.js';
import { LimitPolicy } from './limit-policy.js';
import { ModelPolicy } from './model-policy.js';
import { StreamUsagePolicy } from './stream-usage-policy.js';

/**
 * Rules, limits and budgets of keys and teams that are checked before a call is forwarded. Global for the log writer,
 * which settles charges.
 */
@Global()
@Module({
  imports: [AuthModule, PoliciesModule, PricesModule, LedgerModule],
  providers: [
    ModelPolicy,
    StreamUsagePolicy,
    LimitPolicy,
    { provide: CHARGE_KEEPER, useExisting: LedgerService }
  ],
  exports: [CHARGE_KEEPER]
})
export class LimitsModule {}
