import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { Get, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import {
  type CountedUsage,
  type StatementFilter,
  statementFilterSchema,
  statementSchema,
  type UsageExportFilter,
  usageExportSchema,
  type UsageFilter,
  usageFilterSchema,
  usagePageSchema,
} from './usage.schema.js';
import { type Table, UsageService } from './usage.service.js';

const TEXT = { schema: { type: 'string' as const } };

@AdminController('usage', { name: 'Usage', description: 'Sums over the request log.' })
export class UsageController {
  constructor(private readonly usage: UsageService) {}

  /** Calls, errors, tokens and bytes by the groups of `group_by`, newest period first. */
  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'getUsage',
    summary: 'Sum calls, errors, tokens, costs and bytes by group, newest period first',
  })
  @ApiOkResponse({ standardSchema: usagePageSchema, description: 'One page of groups.' })
  @ApiErrors(404)
  list(
    @Query({ schema: usageFilterSchema }) filter: UsageFilter,
    @CurrentScope() scope: Scope,
  ): Promise<CountedUsage> {
    return this.usage.list(filter, scope);
  }

  @Get('export')
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'exportUsage',
    summary: 'Export the sums of all groups as a table for spreadsheets',
    description:
      'Comma-separated values (RFC 4180), at most 50,000 groups: the time zone and range, the month if the range is in one, ' +
      'the groups with their IDs, exact costs, the calls that they leave out, and tokens by what they cost.',
  })
  @ApiOkResponse({ description: 'The table.', content: { 'text/csv': TEXT } })
  @ApiErrors(404)
  async export(
    @Query({ schema: usageExportSchema }) filter: UsageExportFilter,
    @CurrentScope() scope: Scope,
    @Res() res: Response,
  ): Promise<void> {
    await sendTable(res, await this.usage.table(filter, scope));
  }

  @Get('statement')
  @Roles(['viewer', 'team'])
  @ApiOperation({
    operationId: 'getStatement',
    summary: 'Get what a team has used in a month',
    description:
      'As it is counted now: late rows and `reprice` change it. By key, provider and model, the dearest first.',
  })
  @ApiOkResponse({
    standardSchema: statementSchema,
    description: 'The statement, or with `format=csv` its lines as a table.',
  })
  @ApiErrors(404)
  async statement(
    @Query({ schema: statementFilterSchema }) filter: StatementFilter,
    @CurrentScope() scope: Scope,
    @Res() res: Response,
  ): Promise<void> {
    const statement = await this.usage.statement(filter, scope);
    if (filter.format === 'csv') await sendTable(res, this.usage.tableOf(statement));
    else res.json(statement);
  }
}

/** A step of the table at a time, so that calls are forwarded in between. */
async function sendTable(res: Response, { name, chunks }: Table): Promise<void> {
  res.writeHead(200, {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': `attachment; filename="${name}"`,
    'cache-control': 'no-store',
  });
  if (res.req.method === 'HEAD') res.end();
  else await pipeline(Readable.from(inSteps(chunks)), res);
}

async function* inSteps(chunks: Iterable<string>): AsyncGenerator<string> {
  for (const chunk of chunks) {
    yield chunk;
    await setImmediate();
  }
}
