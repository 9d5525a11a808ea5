import { Get, Query } from '@nestjs/common';
import { AuditReader, type AuditView } from './audit.reader.js';
import type { Page } from '../database/page.js';
import { AdminController } from '../admin/admin-controller.js';
import { auditFilterSchema } from './audit.schema.js';
import { checked } from '../admin/checked.js';

@AdminController('audit')
export class AuditController {
  constructor(private readonly audit: AuditReader) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<AuditView>> {
    return this.audit.list(checked(auditFilterSchema, query));
  }
}
