import { Module } from '@nestjs/common';
import { z } from 'zod';
import { ConfigModule } from '../../../src/index.js';
import { TokenAlarmService } from './token-alarm.service.js';

const settings = z.object({
  TOKEN_ALARM_PER_DAY: z.coerce.number().int().min(1).default(5_000_000)
});

@Module({
  imports: [ConfigModule.forFeature(settings)],
  providers: [TokenAlarmService]
})
export class TokenAlarmModule {}
