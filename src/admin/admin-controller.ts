import { applyDecorators, Controller, UseFilters, UseGuards, UseInterceptors } from '@nestjs/common';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminTokenGuard } from './admin-token.guard.js';
import { JsonBodyInterceptor } from './json-body.interceptor.js';

/**
 * A controller of the admin API: `@AdminController('quotas')` serves `/admin/v1/quotas`. The token is checked first, then
 * the body is read, and errors are sent in the admin shape.
 */
export function AdminController(path: string): ClassDecorator {
  return applyDecorators(
    Controller(`admin/v1/${path}`),
    UseGuards(AdminTokenGuard),
    UseInterceptors(JsonBodyInterceptor),
    UseFilters(AdminErrorFilter),
  );
}
