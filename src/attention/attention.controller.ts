import { Get } from '@nestjs/common';
import { CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { type Attention, attentionSchema } from './attention.schema.js';
import { AttentionService } from './attention.service.js';

@AdminController('attention', { name: 'Attention', description: 'What needs somebody now.' })
export class AttentionController {
  constructor(private readonly attention: AttentionService) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'getAttention',
    summary: 'List what needs somebody: failing providers, spent budgets, expiring keys and others',
    description: 'Members of teams see what concerns the budgets and keys of their teams.',
  })
  @ApiOkResponse({ standardSchema: attentionSchema, description: 'The most urgent first.' })
  list(@CurrentScope() scope: Scope): Promise<Attention> {
    return this.attention.list(scope);
  }
}
