import { Get, Query } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import type { Page } from '../database/page.js';
import { AuditReader } from './audit.reader.js';
import { type AuditFilter, auditFilterSchema, auditPageSchema, type AuditView } from './audit.schema.js';

@AdminController('audit', { name: 'Audit', description: 'Who changed what, and who signed in.' })
export class AuditController {
  constructor(private readonly audit: AuditReader) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listAudit', summary: 'List changes and who made them, newest first' })
  @ApiOkResponse({ standardSchema: auditPageSchema, description: 'One page of changes.' })
  list(@Query({ schema: auditFilterSchema }) filter: AuditFilter): Promise<Page<AuditView>> {
    return this.audit.list(filter);
  }
}
