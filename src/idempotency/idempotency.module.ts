import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { RegressionsModule } from '../regressions/regressions.module.js';
import { RequestLogModule } from '../request-log/request-log.module.js';
import { ResponseCipher } from './response-cipher.js';
import { CacheBatches } from './cache-batches.js';
import { CachedResponses } from './cached-responses.service.js';
import { PendingResponses } from './pending-responses.service.js';
import { ClaimStore } from './claim-store.service.js';
import { ClaimsService } from './claims.service.js';
import { IdempotencyRecord } from './idempotency-record.entity.js';
import { IdempotencyRecords } from './idempotency-records.js';
import { LostClaims } from './lost-claims.service.js';
import { ResponseMemory } from './response-memory.js';
import { StoreFailures } from './store-failures.service.js';
import { StoredBytes } from './stored-bytes.service.js';

/** Idempotent requests: one call per `Idempotency-Key`, and its response for duplicates. */
@Module({
  imports: [RegressionsModule, RequestLogModule, TypeOrmModule.forFeature([IdempotencyRecord])],
  providers: [
    IdempotencyRecords,
    ResponseCipher,
    StoredBytes,
    ResponseMemory,
    StoreFailures,
    ClaimStore,
    ClaimsService,
    PendingResponses,
    CacheBatches,
    CachedResponses,
    LostClaims
  ],
  exports: [CachedResponses, ClaimsService, PendingResponses, ResponseMemory, StoreFailures, StoredBytes]
})
export class IdempotencyModule {}
