import { applyDecorators } from '@nestjs/common';
import { ApiResponse } from './api-decorators.js';
import { errorSchema } from './fields.schema.js';

interface Described {
  description: string;
  code: string;
  message: string;
  /** The field that the example is about. */
  field?: string;
}

/** The statuses that ApiErrors can document. */
export type ApiErrorStatus = 400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 503;

const ERRORS: Readonly<Record<ApiErrorStatus, Described>> = {
  400: {
    description: 'The request is invalid; `details` names each field that is wrong.',
    code: 'invalid_request',
    message: 'must be an integer from 1 to 500',
    field: 'limit',
  },
  401: {
    description: 'The admin token is missing or wrong. After many wrong ones, with `Retry-After`.',
    code: 'invalid_admin_token',
    message: 'The admin token is missing or wrong. Send "Authorization: Bearer <ADMIN_TOKEN>".',
  },
  403: {
    description:
      'The role may not do this, or a request with a session cookie lacks a header of the console.',
    code: 'forbidden',
    message: 'The role viewer may not do this. Ask an administrator.',
  },
  404: {
    description: 'Not found.',
    code: 'not_found',
    message: 'no team has this name or id; list the teams, or create it first',
    field: 'team',
  },
  409: {
    description: 'Conflict: the name is taken, the key is revoked, or the object changed since you read it.',
    code: 'conflict',
    message: 'a team with this name already exists; choose another name',
    field: 'name',
  },
  413: {
    description: 'The body is larger than 100 KB.',
    code: 'request_too_large',
    message: 'The body is larger than 100 KB. Send a smaller one.',
  },
  415: {
    description: 'The body is not JSON.',
    code: 'unsupported_media_type',
    message: 'The body must be JSON. Send "Content-Type: application/json".',
  },
  429: {
    description:
      'Too many requests, with `Retry-After`: unknown tokens or sessions from one address, or sign-ins of one user; or too many exports are running.',
    code: 'rate_limited',
    message: 'Too many unknown tokens or sessions came from this address. Try again in a second.',
  },
  503: {
    description: 'The database is unavailable; with `Retry-After`.',
    code: 'database_unavailable',
    message: 'The database is unavailable or too slow. Try again; narrow a list with from and to.',
  },
};

/** Documents the errors of an endpoint, or of every endpoint of a controller, in the OpenAPI document. */
export function ApiErrors(...statuses: ApiErrorStatus[]): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ...statuses.map((status) =>
      ApiResponse({ status, description: ERRORS[status].description, standardSchema: errorSchema }),
    ),
  );
}

/** The body of an error, as an example for the OpenAPI document; undefined for a status that is not one of these. */
export function errorExample(status: string): object | undefined {
  const known: Described | undefined = (ERRORS as Readonly<Record<string, Described>>)[status];
  if (known === undefined) return undefined;
  const { code, message, field } = known;
  return {
    error: {
      message: field === undefined ? message : `${field}: ${message}`,
      code,
      details: field === undefined ? [] : [{ field, message }],
    },
  };
}
