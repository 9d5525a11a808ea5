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
import { TooManyUnknown } from './access/credential-lookups.js';
import { isDatabaseUnavailable, isUnstorableText } from '../database/sql-state.js';
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
  forbidden: { status: 403, code: 'forbidden' },
  upgrade_in_progress: { status: 409, code: 'upgrade_in_progress' },
};

/** For each status that Nest has an exception for, and 429. */
const CODES: Record<number, string> = {
  400: 'invalid_request',
  401: 'invalid_admin_token',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  406: 'not_acceptable',
  408: 'request_timeout',
  409: 'conflict',
  410: 'gone',
  412: 'precondition_failed',
  413: 'request_too_large',
  415: 'unsupported_media_type',
  418: 'im_a_teapot',
  421: 'misdirected_request',
  422: 'unprocessable_content',
  429: 'rate_limited',
  501: 'not_implemented',
  502: 'bad_gateway',
  503: 'service_unavailable',
  504: 'gateway_timeout',
  505: 'http_version_not_supported',
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
    this.respond(error, host.switchToHttp().getResponse<Response>());
  }

  /** @param challenge for `WWW-Authenticate` of a 401 */
  respond(error: unknown, res: Response, challenge = 'Bearer'): void {
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
    // 500 is a bug: its message is for the log.
    if (error instanceof HttpException && error.getStatus() !== 500) {
      if (error.getStatus() > 500) this.logger.error(describeError(error), error.stack);
      return ofHttp(error);
    }
    const { type, status } = error as { type?: unknown; status?: unknown };
    if (typeof status === 'number' && status < 500) {
      // An error without a type: the body does not match its Content-Encoding.
      const known = BODY_ERRORS[String(type)] ?? {
        status: 400,
        message: 'The body could not be read. Check its Content-Encoding and send it again.',
      };
      return { ...known, code: CODES[known.status]! };
    }
    if (isUnstorableText(error)) {
      return {
        status: 400,
        code: 'invalid_request',
        message: 'The request contains a character that Postgres cannot store, such as U+0000. Remove it.',
      };
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
  // A list, if a pipe of Nest has set it.
  const { message } = error.getResponse() as { message?: unknown };
  const messages = Array.isArray(message) ? message.map(String) : [];
  return {
    status,
    code: CODES[status] ?? 'invalid_request',
    message: messages.join('; ') || error.message,
    details: messages.map((one) => ({ field: 'request', message: one })),
    ...(error instanceof TooManyUnknown && { headers: { 'retry-after': '1' } }),
  };
}
