import { Initial1795000000000 } from '../../migrations/1795000000000-initial.js';
import { KeyChanges1795000001000 } from '../../migrations/1795000001000-key-changes.js';
import { UsageViews1795000002000 } from '../../migrations/1795000002000-usage-views.js';
import { Providers1795000003000 } from '../../migrations/1795000003000-providers.js';
import { Audit1795000004000 } from '../../migrations/1795000004000-audit.js';
import { Idempotency1795000005000 } from '../../migrations/1795000005000-idempotency.js';
import { NoDefaultPartition1795000006000 } from '../../migrations/1795000006000-no-default-partition.js';
import { AddUsageColumns1795100000000 } from '../../migrations/1795100000000-add-usage-columns.js';
import { Comments1795200000000 } from '../../migrations/1795200000000-comments.js';
import { Prices1795300000000 } from '../../migrations/1795300000000-prices.js';
import { RequestLogCost1795300000001 } from '../../migrations/1795300000001-request-log-cost.js';
import { UsageRollups1795400000000 } from '../../migrations/1795400000000-usage-rollups.js';
import { Attribution1795400001000 } from '../../migrations/1795400001000-attribution.js';
import { UsageViewsOfSums1795400002000 } from '../../migrations/1795400002000-usage-views-of-sums.js';
import { ModelRules1795500000000 } from '../../migrations/1795500000000-model-rules.js';
import { Limits1795600000000 } from '../../migrations/1795600000000-limits.js';
import { LimitExchange1795600000001 } from '../../migrations/1795600000001-limit-exchange.js';
import { RequestLogCharges1795600000002 } from '../../migrations/1795600000002-request-log-charges.js';
import { UsageDays1795600500000 } from '../../migrations/1795600500000-usage-days.js';
import { LimitExchangeLargeAmounts1795600600000 } from '../../migrations/1795600600000-limit-exchange-large-amounts.js';
import { Webhooks1795700000000 } from '../../migrations/1795700000000-webhooks.js';
import { AdminAccess1795800000000 } from '../../migrations/1795800000000-admin-access.js';
import { SelfService1795800001000 } from '../../migrations/1795800001000-self-service.js';
import { LimitHoldBusy1796000010000 } from '../../migrations/1796000010000-limit-hold-busy.js';
import { ClientCredentials1796100010000 } from '../../migrations/1796100010000-client-credentials.js';
import { Websockets1796100020000 } from '../../migrations/1796100020000-websockets.js';
import { ProviderAuthSettings1796200010000 } from '../../migrations/1796200010000-provider-auth-settings.js';
import { ResponseCache1796200011000 } from '../../migrations/1796200011000-response-cache.js';
import { RequestLogAttempts1796300010000 } from '../../migrations/1796300010000-request-log-attempts.js';
import { Routes1796300010001 } from '../../migrations/1796300010001-routes.js';
import { SavedCosts1796400020000 } from '../../migrations/1796400020000-saved-costs.js';
import { WebsocketChanges1796400020001 } from '../../migrations/1796400020001-websocket-changes.js';
import { Sinks1797300010000 } from '../../migrations/1797300010000-sinks.js';
import { LimitWindows1798000030000 } from '../../migrations/1798000030000-limit-windows.js';
import { LimitLockedMeters1798000030001 } from '../../migrations/1798000030001-limit-locked-meters.js';
import { LimitRetention1798000030002 } from '../../migrations/1798000030002-limit-retention.js';
import { Sessions1798000080000 } from '../../migrations/1798000080000-sessions.js';
import { KeyOwners1798000080001 } from '../../migrations/1798000080001-key-owners.js';
import { ShownUrls1798000090000 } from '../../migrations/1798000090000-shown-urls.js';
import { StoredFunctions1798000100000 } from '../../migrations/1798000100000-stored-functions.js';
import { LogConsumers1798000110000 } from '../../migrations/1798000110000-log-consumers.js';
import { FailingProviders1798000140001 } from '../../migrations/1798000140001-failing-providers.js';
import { ProviderErrors1798000140000 } from '../../migrations/1798000140000-provider-errors.js';
import { Annotations1798000150000 } from '../../migrations/1798000150000-annotations.js';
import { LimitRejections1798000160000 } from '../../migrations/1798000160000-limit-rejections.js';
import { Refusals1798000190000 } from '../../migrations/1798000190000-refusals.js';
import { UnitPrices1798000230000 } from '../../migrations/1798000230000-unit-prices.js';
import { FinalUsage1798000200000 } from '../../migrations/1798000200000-final-usage.js';
import { UnknownCosts1798000210000 } from '../../migrations/1798000210000-unknown-costs.js';
import { OnDisconnect1798000220000 } from '../../migrations/1798000220000-on-disconnect.js';
import { ProviderJobs1798000240000 } from '../../migrations/1798000240000-provider-jobs.js';
import { HotLimits1798000270000 } from '../../migrations/1798000270000-hot-limits.js';
import { Owners1798000280000 } from '../../migrations/1798000280000-owners.js';
import { Groups1798000320000 } from '../../migrations/1798000320000-groups.js';
import { InputLimit1798000300000 } from '../../migrations/1798000300000-input-limit.js';
import { UnknownCostOfOlderVersions1798000300001 } from '../../migrations/1798000300001-unknown-cost-of-older-versions.js';
import { UnpricedUnits1798000300002 } from '../../migrations/1798000300002-unpriced-units.js';
import { LimitOwners1798000330000 } from '../../migrations/1798000330000-limit-owners.js';
import { CountedBudgets1798000375000 } from '../../migrations/1798000375000-counted-budgets.js';
import { InstallationLimits1798000375001 } from '../../migrations/1798000375001-installation-limits.js';
import { RecountUnpricedUnits1798000385000 } from '../../migrations/1798000385000-recount-unpriced-units.js';
import { Trusts1798000390000 } from '../../migrations/1798000390000-trusts.js';
import { TrustChanges1798000390001 } from '../../migrations/1798000390001-trust-changes.js';
import { KeylessProviders1798000400000 } from '../../migrations/1798000400000-keyless-providers.js';
import { SignIn1798000410000 } from '../../migrations/1798000410000-sign-in.js';
import { Subjects1798000420000 } from '../../migrations/1798000420000-subjects.js';
import { SessionsAtProvider1798000420001 } from '../../migrations/1798000420001-sessions-at-provider.js';
import { TeamProviders1798000460000 } from '../../migrations/1798000460000-team-providers.js';
import { Policies1798000470000 } from '../../migrations/1798000470000-policies.js';
import { DatabaseRegressions1798000480000 } from '../../migrations/1798000480000-database-regressions.js';
import { AuditTimes1798000500000 } from '../../migrations/1798000500000-audit-times.js';
import { RecentSignIns1798000510000 } from '../../migrations/1798000510000-recent-sign-ins.js';
import { LateCounters1798000540000 } from '../../migrations/1798000540000-late-counters.js';
import { LossesOfOneServer1798000550000 } from '../../migrations/1798000550000-losses-of-one-server.js';
import { DeviceRequestSignIn1798000560000 } from '../../migrations/1798000560000-device-request-sign-in.js';
import { Leads1798000150001 } from '../../migrations/1798000150001-leads.js';

/** Every migration, in order. Listed by name, so that a glob can neither add nor miss one. */
export const MIGRATIONS = [
  Initial1795000000000,
  KeyChanges1795000001000,
  UsageViews1795000002000,
  Providers1795000003000,
  Audit1795000004000,
  Idempotency1795000005000,
  NoDefaultPartition1795000006000,
  AddUsageColumns1795100000000,
  Comments1795200000000,
  Prices1795300000000,
  RequestLogCost1795300000001,
  UsageRollups1795400000000,
  Attribution1795400001000,
  UsageViewsOfSums1795400002000,
  ModelRules1795500000000,
  Limits1795600000000,
  LimitExchange1795600000001,
  RequestLogCharges1795600000002,
  UsageDays1795600500000,
  LimitExchangeLargeAmounts1795600600000,
  Webhooks1795700000000,
  AdminAccess1795800000000,
  SelfService1795800001000,
  LimitHoldBusy1796000010000,
  ClientCredentials1796100010000,
  Websockets1796100020000,
  ProviderAuthSettings1796200010000,
  ResponseCache1796200011000,
  RequestLogAttempts1796300010000,
  Routes1796300010001,
  SavedCosts1796400020000,
  WebsocketChanges1796400020001,
  Sinks1797300010000,
  LimitWindows1798000030000,
  LimitLockedMeters1798000030001,
  LimitRetention1798000030002,
  Sessions1798000080000,
  KeyOwners1798000080001,
  ShownUrls1798000090000,
  StoredFunctions1798000100000,
  LogConsumers1798000110000,
  ProviderErrors1798000140000,
  Annotations1798000150000,
  Leads1798000150001,
  FailingProviders1798000140001,
  LimitRejections1798000160000,
  Refusals1798000190000,
  FinalUsage1798000200000,
  UnknownCosts1798000210000,
  OnDisconnect1798000220000,
  UnitPrices1798000230000,
  ProviderJobs1798000240000,
  HotLimits1798000270000,
  Owners1798000280000,
  InputLimit1798000300000,
  UnknownCostOfOlderVersions1798000300001,
  UnpricedUnits1798000300002,
  Groups1798000320000,
  LimitOwners1798000330000,
  CountedBudgets1798000375000,
  InstallationLimits1798000375001,
  RecountUnpricedUnits1798000385000,
  Trusts1798000390000,
  TrustChanges1798000390001,
  KeylessProviders1798000400000,
  SignIn1798000410000,
  Subjects1798000420000,
  SessionsAtProvider1798000420001,
  TeamProviders1798000460000,
  Policies1798000470000,
  DatabaseRegressions1798000480000,
  AuditTimes1798000500000,
  RecentSignIns1798000510000,
  LateCounters1798000540000,
  LossesOfOneServer1798000550000,
  DeviceRequestSignIn1798000560000,
];
