import { Get, Header } from '@nestjs/common';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { systemSchema, type SystemView } from './system.schema.js';
import { SystemService } from './system.service.js';

@AdminController('system', { name: 'System', description: 'The state of the gateway.' })
export class SystemController {
  constructor(private readonly system: SystemService) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getSystem', summary: 'Show the state of this process and of the database' })
  @ApiOkResponse({ standardSchema: systemSchema, description: 'The state, without secrets.' })
  show(): Promise<SystemView> {
    return this.system.show();
  }

  @Get('changelog')
  @Roles(['viewer'])
  @Header('content-type', 'text/plain; charset=utf-8')
  @ApiOperation({ operationId: 'getChangelog', summary: 'Show what is new in this version and those before' })
  @ApiOkResponse({ description: 'Markdown.', content: { 'text/plain': { schema: { type: 'string' } } } })
  @ApiErrors(404)
  changelog(): string {
    return this.system.changelog();
  }
}
