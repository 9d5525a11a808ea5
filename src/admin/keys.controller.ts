import { Body, Get, Header, HttpCode, Param, Post, Query } from '@nestjs/common';
import type { Page } from '../database/page.js';
import { KeysService } from '../keys/keys.service.js';
import type { KeyView } from '../keys/key-view.js';
import { AdminController } from './admin-controller.js';
import { checked } from './checked.js';
import { keyFilterSchema, newKeySchema, revocationSchema } from './keys.schema.js';

@AdminController('admin/v1/keys')
export class KeysController {
  constructor(private readonly keys: KeysService) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<KeyView>> {
    return this.keys.list(checked(keyFilterSchema, query));
  }

  /** The only answer that ever holds this key: nothing on the way may keep a copy. */
  @Post()
  @Header('Cache-Control', 'no-store')
  async create(@Body() body: unknown): Promise<KeyView & { key: string }> {
    const { expires_at: expiresAt, ...rest } = checked(newKeySchema, body);
    const { key, secret } = await this.keys.create({ ...rest, expiresAt });
    return { ...key, key: secret };
  }

  @Get(':id')
  get(@Param('id') id: string): Promise<KeyView> {
    return this.keys.get(id);
  }

  @Post(':id/revoke')
  @HttpCode(200)
  revoke(@Param('id') id: string, @Body() body: unknown): Promise<KeyView> {
    checked(revocationSchema, body);
    return this.keys.revoke(id);
  }
}
