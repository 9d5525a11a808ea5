import { Body, Get, HttpCode, Param, Post, Query } from '@nestjs/common';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiBody, ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { ApiErrors } from '../admin/api-errors.js';
import { nothingSchema } from '../admin/fields.schema.js';
import type { Page } from '../database/page.js';
import {
  type JobFilter,
  jobFilterSchema,
  jobId,
  jobPageSchema,
  jobSchema,
  type JobView,
} from './jobs.schema.js';
import { JobsService } from './jobs.service.js';

@AdminController('jobs', {
  name: 'Jobs',
  description:
    'Batches, background responses and videos: providers go on with them after the call, so what they cost is known later.',
})
export class JobsController {
  constructor(private readonly jobs: JobsService) {}

  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listJobs', summary: 'List jobs, the newest first' })
  @ApiOkResponse({ standardSchema: jobPageSchema, description: 'A page of jobs.' })
  list(@Query({ schema: jobFilterSchema }) filter: JobFilter): Promise<Page<JobView>> {
    return this.jobs.list(filter);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getJob', summary: 'Get a job, by the ID of the call that created it' })
  @ApiOkResponse({ standardSchema: jobSchema, description: 'The job.' })
  @ApiErrors(404)
  get(@Param('id', { schema: jobId }) id: string): Promise<JobView> {
    return this.jobs.get(id);
  }

  @Post(':id/check')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'checkJob',
    summary: 'Ask the provider for a job within some seconds',
    description: 'Also for one whose usage was given up as unknown.',
  })
  @ApiBody({ required: false })
  @ApiOkResponse({ standardSchema: jobSchema, description: 'The job, which is due.' })
  @ApiErrors(404, 409, 413, 415)
  check(
    @Param('id', { schema: jobId }) id: string,
    @Body({ schema: nothingSchema }) _: object,
  ): Promise<JobView> {
    return this.jobs.check(id);
  }
}
