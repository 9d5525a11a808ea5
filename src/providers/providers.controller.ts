import { Body, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import type { Actor } from '../platform/actor.js';
import type { Page } from '../database/page.js';
import { type ProbeResult, ProviderProbe } from './provider-probe.js';
import { type ProviderView, revisionOf } from './provider-view.js';
import { type Expected, StoredProvidersService } from './stored-providers.service.js';
import { Acting } from '../admin/acting.js';
import { AdminController } from '../admin/admin-controller.js';
import { checked } from '../admin/checked.js';
import { EntityTags, IfMatch } from '../admin/entity-tag.js';
import { newProviderSchema, nothingSchema, providerChangeSchema } from './providers.schema.js';

/** With If-Match, a provider that somebody else has changed meanwhile is left as it is: 409. */
@AdminController('providers')
@EntityTags(revisionOf)
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
  create(@Body() body: unknown, @Acting() by: Actor): Promise<ProviderView> {
    return this.providers.create(checked(newProviderSchema, body), by);
  }

  @Get(':name')
  get(@Param('name') name: string): Promise<ProviderView> {
    return this.providers.get(name);
  }

  @Patch(':name')
  update(
    @Param('name') name: string,
    @Body() body: unknown,
    @Acting() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<ProviderView> {
    const change = checked(providerChangeSchema, body);
    return this.providers.update(name, change, by, expected);
  }

  @Delete(':name')
  @HttpCode(204)
  remove(@Param('name') name: string, @Acting() by: Actor, @IfMatch() expected: Expected): Promise<void> {
    return this.providers.remove(name, by, expected);
  }

  /** 200 whatever came of it: the test was made, and its result is the answer. */
  @Post(':name/test')
  @HttpCode(200)
  async test(@Param('name') name: string, @Body() body: unknown): Promise<ProbeResult> {
    checked(nothingSchema, body);
    return this.probe.run(await this.providers.open(name));
  }
}
