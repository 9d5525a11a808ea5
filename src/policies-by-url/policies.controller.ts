import { Body, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import {
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
} from '../admin/api-decorators.js';
import { ApiErrors } from '../admin/api-errors.js';
import { CurrentActor } from '../admin/current-actor.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import { nothingSchema } from '../admin/fields.schema.js';
import { LargestBody } from '../admin/json-body.interceptor.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import {
  MAX_TEST_BYTES,
  type NewPolicy,
  newPolicySchema,
  type PolicyChange,
  policyChangeSchema,
  policyInPath,
  policyPageSchema,
  policySchema,
  type PolicyTestResult,
  policyTestSchema,
  type PolicyView,
  type TestedCall,
  testedCallSchema,
} from './policies.schema.js';
import { PoliciesService } from './policies.service.js';

/** With If-Match, a change of a policy that has changed meanwhile gets 409. */
@AdminController('policies', {
  name: 'Policies',
  description: 'URLs that are asked whether a call is forwarded.',
})
@EntityTags()
export class PoliciesController {
  constructor(private readonly policies: PoliciesService) {}

  /** Not paged, because there are few policies. */
  @Get()
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'listPolicies', summary: 'List all policies' })
  @ApiOkResponse({
    standardSchema: policyPageSchema,
    description: 'All policies, in the order in which they are asked.',
  })
  async list(@Query({ schema: nothingSchema }) _: object): Promise<Page<PolicyView>> {
    return { data: await this.policies.list(), next_cursor: null };
  }

  @Post()
  @ApiOperation({
    operationId: 'createPolicy',
    summary: 'Create a policy',
    description:
      'Calls are asked about at once. Create policies once all replicas run a version that knows them: others do not ask.',
  })
  @ApiCreatedResponse({ standardSchema: policySchema, description: 'The new policy.', headers: ETAG })
  @ApiErrors(409, 413, 415)
  create(
    @Body({ schema: newPolicySchema }) policy: NewPolicy,
    @CurrentActor() by: Actor,
  ): Promise<PolicyView> {
    return this.policies.create(policy, by);
  }

  @Get(':id')
  @Roles(['viewer'])
  @ApiOperation({ operationId: 'getPolicy', summary: 'Get a policy' })
  @ApiOkResponse({ standardSchema: policySchema, description: 'The policy.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('id', { schema: policyInPath }) nameOrId: string): Promise<PolicyView> {
    return this.policies.get(nameOrId);
  }

  @Patch(':id')
  @ApiOperation({
    operationId: 'changePolicy',
    summary: 'Change a policy',
    description: 'Earlier decisions count no longer.',
  })
  @ApiOkResponse({ standardSchema: policySchema, description: 'The changed policy.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: policyInPath }) nameOrId: string,
    @Body({ schema: policyChangeSchema }) change: PolicyChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<PolicyView> {
    return this.policies.update(nameOrId, change, by, expected);
  }

  @Delete(':id')
  @HttpCode(204)
  @ApiOperation({ operationId: 'removePolicy', summary: 'Remove a policy' })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('id', { schema: policyInPath }) nameOrId: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.policies.remove(nameOrId, by, expected);
  }

  /** Always 200: the body has the result of the test. */
  @Post(':id/test')
  @HttpCode(200)
  @LargestBody(MAX_TEST_BYTES)
  @ApiOperation({
    operationId: 'testPolicy',
    summary: 'Ask a policy about a call that is made up, and report what is wrong',
    description:
      'The status is 200 also when the receiver fails: the body has the result. Nothing is forwarded, and the scope of the policy does not count.',
  })
  @ApiOkResponse({ standardSchema: policyTestSchema, description: 'The result.' })
  @ApiErrors(404, 409, 413, 415)
  test(
    @Param('id', { schema: policyInPath }) nameOrId: string,
    @Body({ schema: testedCallSchema }) call: TestedCall,
  ): Promise<PolicyTestResult> {
    return this.policies.test(nameOrId, call);
  }
}
