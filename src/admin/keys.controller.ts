import { Body, Get, Header, Headers, HttpCode, Param, Patch, Post, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { Actor } from '../audit/actor.js';
import type { Page } from '../database/page.js';
import type { IssuedKey } from '../keys/insert-key.js';
import type { KeyView } from '../keys/key-view.js';
import { KeysService } from '../keys/keys.service.js';
import { revisionOf } from '../keys/revision.js';
import { Acting } from './acting.js';
import { AdminController } from './admin-controller.js';
import { checked } from './checked.js';
import { entityTag, expectedRevisions } from './entity-tag.js';
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
@AdminController('admin/v1/keys')
export class KeysController {
  constructor(private readonly keys: KeysService) {}

  @Get()
  list(@Query() query: unknown): Promise<Page<KeyView>> {
    return this.keys.list(checked(keyFilterSchema, query));
  }

  /** Nothing on the way may keep a copy of an answer that holds a key. */
  @Post()
  @Header('Cache-Control', 'no-store')
  async create(
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<ShownOnce> {
    const { expires_at: expiresAt, ...rest } = checked(newKeySchema, body);
    return shownOnce(res, await this.keys.create({ ...rest, expiresAt }, by));
  }

  @Get(':id')
  async get(@Param('id') id: string, @Res({ passthrough: true }) res: Response): Promise<KeyView> {
    return tagged(res, await this.keys.get(id));
  }

  @Patch(':id')
  async update(
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<KeyView> {
    const { expires_at: expiresAt, ...rest } = checked(keyChangeSchema, body);
    const change = { ...rest, ...(expiresAt !== undefined && { expiresAt }) };
    return tagged(res, await this.keys.update(id, change, by, expectedRevisions(ifMatch)));
  }

  @Post(':id/rotate')
  @HttpCode(200)
  @Header('Cache-Control', 'no-store')
  async rotate(
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<ShownOnce> {
    const { grace_seconds: grace } = checked(rotationSchema, body);
    return shownOnce(res, await this.keys.rotate(id, grace, by, expectedRevisions(ifMatch)));
  }

  @Post(':id/revoke')
  @HttpCode(200)
  async revoke(
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
    @Body() body: unknown,
    @Acting() by: Actor,
    @Res({ passthrough: true }) res: Response,
  ): Promise<KeyView> {
    checked(revocationSchema, body);
    return tagged(res, await this.keys.revoke(id, by, expectedRevisions(ifMatch)));
  }
}

function tagged(res: Response, key: KeyView): KeyView {
  res.setHeader('ETag', entityTag(revisionOf(key)));
  return key;
}

function shownOnce(res: Response, { key, secret }: IssuedKey): ShownOnce {
  return { ...tagged(res, key), key: secret };
}
