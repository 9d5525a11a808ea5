import { Module } from '@nestjs/common';
import { PoliciesModule } from '../../../src/proxy/policies/policies.module.js';
import { ClosingDayPolicy } from './closing-day.policy.js';

@Module({ imports: [PoliciesModule], providers: [ClosingDayPolicy] })
export class ClosingDayModule {}
