import { applyDecorators, Controller, UseFilters, UseGuards, UseInterceptors } from '@nestjs/common';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminTokenGuard } from './admin-token.guard.js';
import { JsonBodyInterceptor } from './json-body.interceptor.js';

/** A controller below `/admin`: token first, then the body, and faults in the admin shape. */
export function AdminController(path: string): ClassDecorator {
  return applyDecorators(
    Controller(path),
    UseGuards(AdminTokenGuard),
    UseInterceptors(JsonBodyInterceptor),
    UseFilters(AdminErrorFilter),
  );
}
