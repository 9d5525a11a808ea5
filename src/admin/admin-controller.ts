import {
  applyDecorators,
  Controller,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { ApiBearerAuth, ApiTags } from './api-decorators.js';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminGuard } from './admin.guard.js';
import { ApiErrors } from './api-errors.js';
import { JsonBodyInterceptor } from './json-body.interceptor.js';
import { AdminValidationPipe } from './validation.pipe.js';

/** Name of the admin token in the OpenAPI document. */
export const ADMIN_TOKEN_SCHEME = 'adminToken';

/** Name of a gateway key in the OpenAPI document. */
export const GATEWAY_KEY_SCHEME = 'gatewayKey';

/** Descriptions of the groups of endpoints in the OpenAPI document, by their names. */
export const TAG_DESCRIPTIONS = new Map<string, string>();

/** A group of endpoints in the OpenAPI document. */
export interface Tag {
  name: string;
  description: string;
}

/** Puts a controller into a group of endpoints of the OpenAPI document. */
export function ApiGroup(tag: Tag): ClassDecorator & MethodDecorator {
  TAG_DESCRIPTIONS.set(tag.name, tag.description);
  return ApiTags(tag.name);
}

/**
 * Declares a controller of the admin API: `@AdminController('quotas')` serves `/admin/v1/quotas`, in any module. It checks
 * the token or the session and its role (see Roles), then reads and validates the body, and sends errors in the admin
 * format.
 *
 * @param tag its group in the OpenAPI document; by default one with the name of the controller
 */
export function AdminController(path: string, tag?: Tag): ClassDecorator {
  return applyDecorators(
    Controller(`admin/v1/${path}`),
    UseGuards(AdminGuard),
    UseInterceptors(JsonBodyInterceptor),
    UsePipes(AdminValidationPipe),
    UseFilters(AdminErrorFilter),
    ApiBearerAuth(ADMIN_TOKEN_SCHEME),
    ApiErrors(400, 401, 403, 429, 503),
    ...(tag === undefined ? [] : [ApiGroup(tag)]),
  );
}
