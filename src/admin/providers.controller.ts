import { Body, Delete, Get, Headers, HttpCode, Param, Patch, Post, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { Actor } from '../audit/actor.js';
import type { Page } from '../database/page.js';
import { type ProbeResult, ProviderProbe } from '../providers/provider-probe.js';
import { type ProviderView, revisionOf } from '../providers/provider-view.js';
import { StoredProvidersService } from '../providers/stored-providers.service.js';
import { Acting } from './acting.js';
import { AdminController } from './admin-controller.js';
import { checked } from './checked.js';
import { entityTag, expectedRevisions } from './entity-tag.js';
import { newProviderSchema, nothingSchema, providerChangeSchema } from './providers.schema.js';

@AdminController('admin/v1/providers')
export class ProvidersController {
  constructor(
    private readonly providers: StoredProvidersService,
    private readonly probe: ProviderProbe,
  ) {}

  /** All at once: there are few. */
  @Get()
  async list(@Query() query: unknown): Promise<Page<ProviderView>> {
    checked(nothingSchema, query);
    return { data: await this.providers.list(), next_cursor: null };
  }

  @Post()
  async create(
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<ProviderView> {
    return tagged(res, await this.providers.create(checked(newProviderSchema, body), by));
  }

  @Get(':name')
  async get(@Param('name') name: string, @Res({ passthrough: true }) res: Response): Promise<ProviderView> {
    return tagged(res, await this.providers.get(name));
  }

  /** With If-Match, a provider that somebody else has changed meanwhile is left as it is: 409. */
  @Patch(':name')
  async update(
    @Param('name') name: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<ProviderView> {
    const change = checked(providerChangeSchema, body);
    return tagged(res, await this.providers.update(name, change, by, expectedRevisions(ifMatch)));
  }

  @Delete(':name')
  @HttpCode(204)
  async remove(
    @Param('name') name: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Acting() by: Actor,
  ): Promise<void> {
    await this.providers.remove(name, by, expectedRevisions(ifMatch));
  }

  /** 200 whatever came of it: the test was made, and its result is the answer. */
  @Post(':name/test')
  @HttpCode(200)
  async test(@Param('name') name: string, @Body() body: unknown): Promise<ProbeResult> {
    checked(nothingSchema, body);
    return this.probe.run(await this.providers.open(name));
  }
}

function tagged(res: Response, provider: ProviderView): ProviderView {
  res.setHeader('ETag', entityTag(revisionOf(provider)));
  return provider;
}
