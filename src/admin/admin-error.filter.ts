import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  HttpException,
  Injectable,
  Logger,
} from '@nestjs/common';
import type { Response } from 'express';
import { v7 as uuidv7 } from 'uuid';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';
import { ServiceError, type ErrorDetail, type ServiceErrorKind } from '../errors/service-error.js';

interface AdminErrorResponse {
  status: number;
  code: string;
  message: string;
  details?: readonly ErrorDetail[];
  headers?: Record<string, string>;
}

const SERVICE_ERRORS: Record<ServiceErrorKind, { status: number; code: string }> = {
  invalid: { status: 400, code: 'invalid_request' },
  not_found: { status: 404, code: 'not_found' },
  conflict: { status: 409, code: 'conflict' },
};

const CODES: Record<number, string> = {
  400: 'invalid_request',
  401: 'invalid_admin_token',
  404: 'not_found',
  413: 'request_too_large',
  415: 'unsupported_media_type',
};

/** Errors of the JSON parser by their `type` (body-parser documentation, "Errors"). The messages never quote the body. */
const BODY_ERRORS: Record<string, Omit<AdminErrorResponse, 'code'>> = {
  'entity.parse.failed': { status: 400, message: 'The body is not valid JSON. Send one JSON object.' },
  'entity.too.large': {
    status: 413,
    message: 'The body is larger than 100 KB. Send a smaller one.',
    // The rest of the body is still in flight and is not read.
    headers: { connection: 'close' },
  },
  'encoding.unsupported': {
    status: 415,
    message: 'This Content-Encoding is not supported. Send the body uncompressed.',
  },
  'charset.unsupported': { status: 415, message: 'This charset is not supported. Send UTF-8.' },
};

/** Sends every error of an admin request as `{"error":{"message","code","details"}}`, without stacks or SQL. */
@Catch()
@Injectable()
export class AdminErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('Admin');

  constructor(private readonly database: DatabaseService) {}

  catch(error: unknown, host: ArgumentsHost): void {
    this.answer(error, host.switchToHttp().getResponse<Response>());
  }

  /** @param challenge for `WWW-Authenticate` of a 401 */
  answer(error: unknown, res: Response, challenge = 'Bearer'): void {
    const { status, code, message, details = [], headers = {} } = this.responseTo(error);
    if (res.headersSent) {
      // A truncated response must not look complete.
      res.destroy();
      return;
    }
    if (status === 401) res.set('www-authenticate', challenge);
    res.status(status).set({ 'cache-control': 'no-store', ...headers });
    res.json({ error: { message, code, details } });
  }

  private responseTo(error: unknown): AdminErrorResponse {
    if (error instanceof ServiceError) {
      return { ...SERVICE_ERRORS[error.kind], message: error.message, details: error.details };
    }
    if (error instanceof HttpException && error.getStatus() < 500) return ofHttp(error);
    const { type, status } = error as { type?: unknown; status?: unknown };
    if (typeof status === 'number' && status < 500) {
      // An error without a type: the body does not match its Content-Encoding.
      const known = BODY_ERRORS[String(type)] ?? {
        status: 400,
        message: 'The body could not be read. Check its Content-Encoding and send it again.',
      };
      return { ...known, code: CODES[known.status]! };
    }
    if (isDatabaseUnavailable(error) || this.database.notReady !== null) {
      this.logger.warn(`Postgres did not respond: ${describeError(error)}`);
      return {
        status: 503,
        code: 'database_unavailable',
        message: 'The database is unavailable or too slow. Try again; narrow a list with from and to.',
        headers: { 'retry-after': '1' },
      };
    }
    const id = uuidv7();
    const stack = error instanceof Error ? error.stack : undefined;
    this.logger.error(`${id}: ${describeError(error)}`, stack, { request_id: id });
    return {
      status: 500,
      code: 'internal_error',
      message: `Internal gateway error. Search the gateway log for ${id}.`,
    };
  }
}

function ofHttp(error: HttpException): AdminErrorResponse {
  const status = error.getStatus();
  return {
    status,
    code: CODES[status] ?? 'invalid_request',
    message: error.message,
  };
}
