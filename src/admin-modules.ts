import type { ModuleMetadata } from '@nestjs/common';
import { AdminModule } from './admin/admin.module.js';
import { ApplyModule } from './apply/apply.module.js';
import { AuditModule } from './audit/audit.module.js';
import { GroupsModule } from './groups/groups.module.js';
import { PeopleAdminModule } from './identity/people/people-admin.module.js';
import { SignInAdminModule } from './identity/sign-in/sign-in-admin.module.js';
import { KeyTokensModule } from './identity/tokens/key-tokens.module.js';
import { TrustsAdminModule } from './identity/trusts/trusts-admin.module.js';
import { JobsAdminModule } from './jobs/jobs-admin.module.js';
import { KeysModule } from './keys/keys.module.js';
import { LimitsAdminModule } from './limits/limits-admin.module.js';
import { PoliciesAdminModule } from './policies-by-url/policies-admin.module.js';
import { PricesModule } from './pricing/prices.module.js';
import { ProbeModule } from './proxy/upstream/probe.module.js';
import { ProvidersModule } from './providers/providers.module.js';
import { RefusalsModule } from './refusals/refusals.module.js';
import { RegressionsAdminModule } from './regressions/decisions/regressions-admin.module.js';
import { RequestsModule } from './requests/requests.module.js';
import { RoutesModule } from './routes/routes.module.js';
import { SearchModule } from './search/search.module.js';
import { SinksAdminModule } from './sinks/sinks-admin.module.js';
import { TeamsModule } from './teams/teams.module.js';
import { SessionsModule } from './admin/session-list/sessions.module.js';
import { TokensModule } from './admin/tokens/tokens.module.js';
import { UsageModule } from './usage/usage.module.js';
import { WebhooksAdminModule } from './webhooks/webhooks-admin.module.js';

/**
 * The modules of the admin API. The gateway has them all; the command line opens them alone when no gateway runs, so they
 * must not depend on the modules that forward calls.
 */
export const ADMIN_MODULES: NonNullable<ModuleMetadata['imports']> = [
  AdminModule,
  ProbeModule,
  TeamsModule,
  GroupsModule,
  KeysModule,
  TrustsAdminModule,
  KeyTokensModule,
  SignInAdminModule,
  PeopleAdminModule,
  ProvidersModule,
  RoutesModule,
  RequestsModule,
  UsageModule,
  SearchModule,
  RefusalsModule,
  JobsAdminModule,
  LimitsAdminModule,
  PricesModule,
  WebhooksAdminModule,
  PoliciesAdminModule,
  ApplyModule,
  SinksAdminModule,
  TokensModule,
  SessionsModule,
  RegressionsAdminModule,
  AuditModule,
];
