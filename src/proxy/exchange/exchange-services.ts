import { Injectable } from '@nestjs/common';
import { KeyLookupService } from '../../auth/key-lookup.service.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { ProvidersService } from '../../providers/providers.service.js';
import { RequestLogService } from '../../request-log/request-log.service.js';
import { FinishingCalls } from './finishing-calls.service.js';

/** What every exchange uses. */
@Injectable()
export class ExchangeServices {
  constructor(
    readonly log: RequestLogService,
    readonly keys: KeyLookupService,
    readonly providers: ProvidersService,
    readonly finishing: FinishingCalls,
    @InjectSettings() readonly settings: Settings,
  ) {}
}
