import { Body, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import {
  ApiBody,
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
} from '../admin/api-decorators.js';
import { CurrentActor } from '../admin/current-actor.js';
import { type Access, CurrentAccess, CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import { nothingSchema } from '../admin/fields.schema.js';
import type { Page } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import { ProviderProbe } from './provider-probe.js';
import {
  type PostedProvider,
  postedProviderSchema,
  type ProbeResult,
  probeSchema,
  type ProviderChange,
  providerChangeSchema,
  providerName,
  providerPageSchema,
  providerSchema,
  type ProviderView,
} from './providers.schema.js';
import { StoredProvidersService } from './stored-providers.service.js';

/** With If-Match, a change of a provider that has changed meanwhile gets 409. */
@AdminController('providers', {
  name: 'Providers',
  description: 'Where calls are forwarded, and with which API key.',
})
@EntityTags()
export class ProvidersController {
  constructor(
    private readonly providers: StoredProvidersService,
    private readonly probe: ProviderProbe,
  ) {}

  /** Not paged, because there are few providers. */
  @Get()
  @Roles(['viewer', 'lead'])
  @ApiOperation({
    operationId: 'listProviders',
    summary: 'List all providers, without their secrets',
    description: 'Leads see those of their teams.',
  })
  @ApiOkResponse({ standardSchema: providerPageSchema, description: 'All providers.' })
  async list(
    @Query({ schema: nothingSchema }) _: object,
    @CurrentScope() scope: Scope,
  ): Promise<Page<ProviderView>> {
    return { data: await this.providers.list(scope), next_cursor: null };
  }

  @Post()
  @ApiOperation({ operationId: 'createProvider', summary: 'Add a provider' })
  @ApiCreatedResponse({ standardSchema: providerSchema, description: 'The new provider.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  create(
    @Body({ schema: postedProviderSchema }) provider: PostedProvider,
    @CurrentActor() by: Actor,
  ): Promise<ProviderView> {
    return this.providers.create({ ...provider, secret: provider.secret ?? null }, by);
  }

  @Get(':name')
  @Roles(['viewer', 'lead'])
  @ApiOperation({ operationId: 'getProvider', summary: 'Get a provider' })
  @ApiOkResponse({ standardSchema: providerSchema, description: 'The provider.', headers: ETAG })
  @ApiErrors(404)
  get(
    @Param('name', { schema: providerName }) name: string,
    @CurrentScope() scope: Scope,
  ): Promise<ProviderView> {
    return this.providers.get(name, scope);
  }

  @Patch(':name')
  @Roles(['lead'])
  @ApiOperation({
    operationId: 'changeProvider',
    summary: 'Change a provider',
    description:
      'A URL on another host needs the secret again, so that the stored one is never sent elsewhere. Leads may replace the ' +
      'secret of a provider of their team, and change nothing else.',
  })
  @ApiOkResponse({ standardSchema: providerSchema, description: 'The changed provider.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('name', { schema: providerName }) name: string,
    @Body({ schema: providerChangeSchema }) change: ProviderChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
    @CurrentAccess() access: Access,
  ): Promise<ProviderView> {
    if (access.role === 'lead') return this.providers.replaceSecret(name, change, access, expected);
    return this.providers.update(name, change, by, expected);
  }

  @Delete(':name')
  @HttpCode(204)
  @ApiOperation({ operationId: 'removeProvider', summary: 'Remove a provider and its secret' })
  @ApiNoContentResponse({ description: 'Removed.' })
  @ApiErrors(404, 409)
  remove(
    @Param('name', { schema: providerName }) name: string,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<void> {
    return this.providers.remove(name, by, expected);
  }

  /** Always 200: the body has the result of the test. */
  @Post(':name/test')
  @HttpCode(200)
  @ApiOperation({
    operationId: 'testProvider',
    summary: 'Request the model list of a provider and report what is wrong',
    description: 'The status is 200 also when the provider fails: the body has the result.',
  })
  @ApiBody({ required: false })
  @ApiOkResponse({ standardSchema: probeSchema, description: 'The result.' })
  @ApiErrors(404, 409, 413, 415)
  async test(
    @Param('name', { schema: providerName }) name: string,
    @Body({ schema: nothingSchema }) _: object,
  ): Promise<ProbeResult> {
    return this.probe.run(await this.providers.open(name));
  }
}
