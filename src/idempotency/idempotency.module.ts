import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AnswerBox } from './response-cipher.js';
import { AwaitedAnswers } from './pending-responses.service.js';
import { ClaimsService } from './claims.service.js';
import { IdempotencyRecord } from './idempotency-record.entity.js';
import { IdempotencyRecords } from './idempotency-records.js';
import { StoredBytes } from './stored-bytes.service.js';

/** Has this been done before? */
@Module({
  imports: [TypeOrmModule.forFeature([IdempotencyRecord])],
  providers: [IdempotencyRecords, AnswerBox, StoredBytes, ClaimsService, AwaitedAnswers],
  exports: [ClaimsService, AwaitedAnswers, StoredBytes],
})
export class IdempotencyModule {}
