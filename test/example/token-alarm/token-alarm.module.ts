import { Module } from '@nestjs/common';
import { z } from 'zod';
import { ConfigModule } from '../../../src/config/config.module.js';
import { KeysModule } from '../../../src/keys/keys.module.js';
import { ObservabilityModule } from '../../../src/observability/observability.module.js';
import { RequestLogModule } from '../../../src/request-log/request-log.module.js';
import { TokenAlarmService } from './token-alarm.service.js';

const settings = z.object({
  TOKEN_ALARM_PER_DAY: z.coerce.number().int().min(1).default(5_000_000)
});

@Module({
  imports: [ConfigModule.forFeature(settings), KeysModule, ObservabilityModule, RequestLogModule],
  providers: [TokenAlarmService]
})
export class TokenAlarmModule {}
