import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from './api-decorators.js';
import { errorSchema } from './fields.schema.js';

const DESCRIPTIONS = {
  400: 'The request is invalid; `details` names each field that is wrong.',
  401: 'The admin token is missing or wrong. After many wrong ones, with `Retry-After`.',
  404: 'Not found.',
  409: 'Conflict: the name is taken, the key is revoked, or the object changed since you read it.',
  413: 'The body is larger than 100 KB.',
  415: 'The body is not JSON.',
  503: 'The database is unavailable; with `Retry-After`.',
} as const;

/** Documents the errors of an endpoint, or of every endpoint of a controller, in the OpenAPI document. */
export function ApiErrors(...statuses: (keyof typeof DESCRIPTIONS)[]): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ...statuses.map((status) =>
      ApiResponse({ status, description: DESCRIPTIONS[status], standardSchema: errorSchema }),
    ),
  );
}
