import { type DynamicModule, Module } from '@nestjs/common';
import { RequestLogModule } from '../../../src/request-log/request-log.module.js';
import { TOKENS_PER_DAY, TokenAlarmService } from './token-alarm.service.js';

@Module({})
export class TokenAlarmModule {
  /** @param tokensPerDay how many tokens a team may use before the warning */
  static at(tokensPerDay: number): DynamicModule {
    return {
      module: TokenAlarmModule,
      imports: [RequestLogModule],
      providers: [{ provide: TOKENS_PER_DAY, useValue: tokensPerDay }, TokenAlarmService],
    };
  }
}
