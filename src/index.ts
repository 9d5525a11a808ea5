/**
 * What an application and its modules may import from `postern`. Everything else is internal, whatever folder it is in.
 *
 * @packageDocumentation
 */
import 'reflect-metadata';

// Applications
export { PosternModule } from './postern.module.js';
export { PosternFactory, type Setup } from './runtime/postern-factory.js';
export type { ImportedModule } from './runtime/module-tree.js';
export type { PosternOptions } from './config/env.js';

// Settings
export { ConfigModule, InjectSettings } from './config/config.module.js';
export type { Feature } from './config/features.js';
export type { SettingsOptions, SettingsSchema } from './config/module-settings.js';
export type { Settings } from './config/settings.js';

// Calls
export { type Caller, CurrentCaller, type Grant } from './auth/caller.js';
export type { EndpointRule, GrantedSettings, IdempotencyMode } from './keys/gateway-key.entity.js';
export type { OnDisconnect } from './providers/on-disconnect.js';
export type { StreamUsage } from './teams/model-rules.js';
export { GatewayKeyGuard } from './auth/gateway-key.guard.js';
export { PublicRoute } from './platform/public-route.js';
export { CallPolicies } from './proxy/policies/call-policies.js';
export { type Admission, CallPolicy } from './proxy/policies/call-policy.js';
export type { ModelSource } from './proxy/policies/model-source.js';
export type { PolicyCall, ResponseFilter } from './proxy/policies/policy-call.js';
export type { Provider } from './providers/provider.js';
export type { Attribution } from './request-log/attribution.js';
export {
  defineGatewayError,
  GatewayError,
  type GatewayErrorCode,
  type GatewayErrorDefinition,
  type GatewayErrorOptions,
} from './errors/gateway-error.js';

// Finished calls
export { FinishedCalls, type FinishedCallListener } from './request-log/finished-calls.js';
export type { CallTicket, FinishedCall } from './request-log/finished-call.js';
export type { LogRow } from './request-log/columns.js';
export type { Outcome } from './request-log/outcome.js';
export type {
  ExtraCounts,
  ExtraUsage,
  ResponseSum,
  ResponseUsage,
  TokenUsage,
} from './bodies/usage/token-usage.js';
export type { ProviderError } from './bodies/usage/provider-error.js';
export { type LogConsumer, LogConsumers } from './consumers/log-consumers.js';
export type { ConsumedRow } from './consumers/consumer-rows.js';
export { type KeyName, KeyNames } from './keys/key-names.service.js';
export { MetricsService } from './observability/metrics.service.js';
export type { Instruments, Reading, Sample } from './observability/instruments.js';

// The admin API
export { AdminController, type Tag } from './admin/admin-controller.js';
export { type Role, Roles } from './admin/access/role.js';
export { CurrentScope, type Scope } from './admin/access/access.js';
export { CurrentActor } from './admin/current-actor.js';
export type { Actor } from './platform/actor.js';
export { ApiErrors, type ApiErrorStatus } from './admin/api-errors.js';
export * as fields from './admin/fields.schema.js';
export { audited, type AuditedChange, type Subject } from './audit/audited.js';
export { type Change, recordChange, type Shown } from './audit/record-change.js';

// The database
export { DatabaseService } from './database/database.service.js';
export { ReplicaJobs } from './database/replica-jobs.service.js';
export { isUuid, type Page, pageOf, pageOptions, type PageRequest } from './database/page.js';
export { Team } from './teams/team.entity.js';
