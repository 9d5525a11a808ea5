import { Module } from '@nestjs/common';
import { ObservabilityModule } from '../observability/observability.module.js';
import { RefusalRetention } from './refusal-retention.service.js';
import { RefusalWriter } from './refusal-writer.service.js';

/** Counts the requests that the gateway rejects; a command only shows them. */
@Module({
  imports: [ObservabilityModule],
  providers: [RefusalWriter, RefusalRetention]
})
export class RefusalCountingModule {}
