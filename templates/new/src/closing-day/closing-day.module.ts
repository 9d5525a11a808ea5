import { Module } from '@nestjs/common';
import { ClosingDayPolicy } from './closing-day.policy.js';

@Module({ providers: [ClosingDayPolicy] })
export class ClosingDayModule {}
