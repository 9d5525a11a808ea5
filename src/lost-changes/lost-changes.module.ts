import { Module } from '@nestjs/common';
import { RegressionsModule } from '../regressions/regressions.module.js';
import { DeadRuns } from './dead-runs.service.js';
import { EntryTail } from './entry-tail.service.js';
import { LostChanges } from './lost-changes.service.js';

/** Remembers what was changed lately, and puts it back where Postgres has lost it: revocations first. */
@Module({
  imports: [RegressionsModule],
  providers: [EntryTail, LostChanges, DeadRuns]
})
export class LostChangesModule {}
