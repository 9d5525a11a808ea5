import { Body, Get, Header, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import type { Actor } from '../platform/actor.js';
import type { Page } from '../database/page.js';
import type { IssuedKey } from './insert-key.js';
import type { KeyView } from './key-view.js';
import { KeysService } from './keys.service.js';
import { type Expected, revisionOf } from '../database/revision.js';
import { Acting } from '../admin/acting.js';
import { AdminController } from '../admin/admin-controller.js';
import { checked } from '../admin/checked.js';
import { EntityTags, IfMatch } from '../admin/entity-tag.js';
import {
  keyChangeSchema,
  keyFilterSchema,
  newKeySchema,
  revocationSchema,
  rotationSchema,
} from './keys.schema.js';

/** A key in the only answer that ever holds its secret. */
type ShownOnce = KeyView & { key: string };

/** With If-Match, a key that somebody else has changed meanwhile is left as it is: 409. */
@AdminController('keys')
@EntityTags(revisionOf)
export class KeysController {
  constructor(private readonly keys: KeysService) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<KeyView>> {
    return this.keys.list(checked(keyFilterSchema, query));
  }

  /** Nothing on the way may keep a copy of an answer that holds a key. */
  @Post()
  @Header('Cache-Control', 'no-store')
  async create(@Body() body: unknown, @Acting() by: Actor): Promise<ShownOnce> {
    const { expires_at: expiresAt, ...rest } = checked(newKeySchema, body);
    return shownOnce(await this.keys.create({ ...rest, expiresAt }, by));
  }

  @Get(':id')
  get(@Param('id') id: string): Promise<KeyView> {
    return this.keys.get(id);
  }

  @Patch(':id')
  update(
    @Param('id') id: string,
    @Body() body: unknown,
    @Acting() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<KeyView> {
    const { expires_at: expiresAt, ...rest } = checked(keyChangeSchema, body);
    const change = { ...rest, ...(expiresAt !== undefined && { expiresAt }) };
    return this.keys.update(id, change, by, expected);
  }

  @Post(':id/rotate')
  @HttpCode(200)
  @Header('Cache-Control', 'no-store')
  async rotate(
    @Param('id') id: string,
    @Body() body: unknown,
    @Acting() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<ShownOnce> {
    const { grace_seconds: grace } = checked(rotationSchema, body);
    return shownOnce(await this.keys.rotate(id, grace, by, expected));
  }

  @Post(':id/revoke')
  @HttpCode(200)
  revoke(
    @Param('id') id: string,
    @Body() body: unknown,
    @Acting() by: Actor,
    @IfMatch() expected: Expected,
  ): Promise<KeyView> {
    checked(revocationSchema, body);
    return this.keys.revoke(id, by, expected);
  }
}

function shownOnce({ key, secret }: IssuedKey): ShownOnce {
  return { ...key, key: secret };
}
