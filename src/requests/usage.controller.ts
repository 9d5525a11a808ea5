import { Get, Query } from '@nestjs/common';
import type { Page } from '../database/page.js';
import { AdminController } from '../admin/admin-controller.js';
import { checked } from '../admin/checked.js';
import { usageSchema } from './usage.schema.js';
import { UsageService, type UsageView } from './usage.service.js';

@AdminController('usage')
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  /** Calls, errors, tokens and bytes by the groups of `group_by`, newest day or hour first. */
  @Get()
  list(@Query() query: unknown): Promise<Page<UsageView>> {
    return this.usage.list(checked(usageSchema, query));
  }
}
