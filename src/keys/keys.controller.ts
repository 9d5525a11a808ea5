import { Body, Get, HttpCode, Param, Patch, Post, Query, Req } from '@nestjs/common';
import type { Request } from 'express';
import { ApiBody, ApiCreatedResponse, ApiOkResponse, ApiOperation } from '../admin/api-decorators.js';
import { type Access, CurrentAccess, CurrentScope, type Scope } from '../admin/access/access.js';
import { Roles } from '../admin/access/role.js';
import { CurrentActor } from '../admin/current-actor.js';
import { AdminController } from '../admin/admin-controller.js';
import { ApiErrors } from '../admin/api-errors.js';
import { ETAG, EntityTags, IfMatch } from '../admin/entity-tag.js';
import type { Page, PageRequest } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import type { Actor } from '../platform/actor.js';
import type { IssuedKey } from './insert-key.js';
import {
  type Allowance,
  type AllowanceFilter,
  allowanceFilterSchema,
  allowanceSchema,
  issuedKeySchema,
  type IssuedKeyView,
  type KeyChange,
  keyChangeSchema,
  type KeyCounts,
  keyCountsFilterSchema,
  keyCountsPageSchema,
  type KeyFilter,
  keyFilterSchema,
  keyId,
  keyPageSchema,
  keySchema,
  type KeyView,
  type NewKey,
  newKeySchema,
  revocationSchema,
  rotatedKeySchema,
  type RotatedKeyView,
  type Rotation,
  rotationSchema,
} from './keys.schema.js';
import { KeysService } from './keys.service.js';
import { LedKeysService } from './led-keys.service.js';
import { OwnKeysService } from './own-keys.service.js';

const OPTIONAL = { required: false };

/**
 * With If-Match, a change of a key that has changed meanwhile gets 409. Members of a team manage only keys of their own, see
 * OwnKeysService, and its leads all keys of the team, see LedKeysService.
 */
@AdminController('keys', { name: 'Keys', description: 'Gateway keys: what clients send to the gateway.' })
@EntityTags()
export class KeysController {
  constructor(
    private readonly keys: KeysService,
    private readonly own: OwnKeysService,
    private readonly led: LedKeysService,
  ) {}

  @Get()
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'listKeys', summary: 'List keys, newest first' })
  @ApiOkResponse({ standardSchema: keyPageSchema, description: 'One page of keys.' })
  @ApiErrors(404)
  list(
    @Query({ schema: keyFilterSchema }) filter: KeyFilter,
    @CurrentScope() scope: Scope,
  ): Promise<Page<KeyView>> {
    return this.keys.list(filter, scope);
  }

  @Get('allowance')
  @Roles(['team'])
  @ApiOperation({
    operationId: 'getKeyAllowance',
    summary: 'Get which keys the team lets you create for yourself, and how many you have',
    description: 'For members of a team. 403 if the team lets its members create none.',
  })
  @ApiOkResponse({ standardSchema: allowanceSchema, description: 'What a new key of yours would have.' })
  @ApiErrors(404)
  allowance(
    @Query({ schema: allowanceFilterSchema }) { team }: AllowanceFilter,
    @CurrentAccess() access: Access,
  ): Promise<Allowance> {
    return this.own.allowance(team, access);
  }

  @Get('counts')
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'countKeys', summary: 'Count the keys of each team by status' })
  @ApiOkResponse({ standardSchema: keyCountsPageSchema, description: 'One page of teams that have keys.' })
  counts(
    @Query({ schema: keyCountsFilterSchema }) page: PageRequest,
    @CurrentScope() scope: Scope,
  ): Promise<Page<KeyCounts>> {
    return this.keys.counts(page, scope);
  }

  @Post()
  @Roles(['team'])
  @ApiOperation({
    operationId: 'createKey',
    summary: 'Create a key',
    description: 'The response contains the secret, which is never shown again, unless `secret` is false.',
  })
  @ApiCreatedResponse({ standardSchema: issuedKeySchema, description: 'The new key.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  async create(
    @Body({ schema: newKeySchema }) key: NewKey,
    @CurrentActor() by: Actor,
    @CurrentAccess() access: Access,
    @Req() { body }: Request,
  ): Promise<IssuedKeyView> {
    if (access.role === 'team')
      return shownOnce(await this.own.create(key, Object.keys(body as object), access));
    if (access.role === 'lead') return shownOnce(await this.led.create(key, access));
    const { expires_at: expiresAt, ...rest } = key;
    return shownOnce(await this.keys.create({ ...rest, expiresAt }, by));
  }

  @Get(':id')
  @Roles(['viewer', 'team'])
  @ApiOperation({ operationId: 'getKey', summary: 'Get a key' })
  @ApiOkResponse({ standardSchema: keySchema, description: 'The key.', headers: ETAG })
  @ApiErrors(404)
  get(@Param('id', { schema: keyId }) id: string, @CurrentScope() scope: Scope): Promise<KeyView> {
    return this.keys.get(id, scope);
  }

  @Patch(':id')
  @Roles(['lead'])
  @ApiOperation({
    operationId: 'changeKey',
    summary: 'Change a key',
    description:
      'Only the name of a revoked key can be changed, so that another key can take it. Leads change keys of their teams, ' +
      'within the limits of the team.',
  })
  @ApiOkResponse({ standardSchema: keySchema, description: 'The changed key.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  update(
    @Param('id', { schema: keyId }) id: string,
    @Body({ schema: keyChangeSchema }) change: KeyChange,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
    @CurrentAccess() access: Access,
  ): Promise<KeyView> {
    const { expires_at: expiresAt, ...rest } = change;
    const changed = { ...rest, ...(expiresAt !== undefined && { expiresAt }) };
    if (access.role === 'lead') return this.led.update(id, changed, access, expected);
    return this.keys.update(id, changed, by, expected);
  }

  @Post(':id/rotate')
  @Roles(['team'])
  @HttpCode(200)
  @ApiOperation({
    operationId: 'rotateKey',
    summary: 'Rotate a key',
    description:
      'Adds a new secret. The previous one stops working after `grace_seconds`. At most two secrets of a key work: one that ' +
      'is still in an earlier grace stops working at once, and `ended_secrets` names it. The response contains the new ' +
      'secret, which is never shown again. Members of a team may create and rotate keys of their own 20 times an hour.',
  })
  @ApiBody(OPTIONAL)
  @ApiOkResponse({
    standardSchema: rotatedKeySchema,
    description: 'The key with its new secret.',
    headers: ETAG,
  })
  @ApiErrors(404, 409, 413, 415)
  async rotate(
    @Param('id', { schema: keyId }) id: string,
    @Body({ schema: rotationSchema }) { grace_seconds: grace }: Rotation,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
    @CurrentAccess() access: Access,
  ): Promise<RotatedKeyView> {
    const { ended, key, secret } =
      access.role === 'team'
        ? await this.own.rotate(id, grace, access, expected)
        : access.role === 'lead'
          ? await this.led.rotate(id, grace, access, expected)
          : await this.keys.rotate(id, grace, by, expected);
    return { ...key, key: secret, ended_secrets: ended };
  }

  @Post(':id/revoke')
  @Roles(['team'])
  @HttpCode(200)
  @ApiOperation({
    operationId: 'revokeKey',
    summary: 'Revoke a key permanently, with all its secrets',
    description:
      'Takes effect on every replica within one second. Idempotent: revoking again returns the same result.',
  })
  @ApiBody(OPTIONAL)
  @ApiOkResponse({ standardSchema: keySchema, description: 'The revoked key.', headers: ETAG })
  @ApiErrors(404, 409, 413, 415)
  revoke(
    @Param('id', { schema: keyId }) id: string,
    @Body({ schema: revocationSchema }) _: object,
    @CurrentActor() by: Actor,
    @IfMatch() expected: Expected,
    @CurrentAccess() access: Access,
  ): Promise<KeyView> {
    if (access.role === 'team') return this.own.revoke(id, access, expected);
    if (access.role === 'lead') return this.led.revoke(id, access, expected);
    return this.keys.revoke(id, by, expected);
  }
}

function shownOnce({ key, secret }: IssuedKey): IssuedKeyView {
  return { ...key, key: secret };
}
