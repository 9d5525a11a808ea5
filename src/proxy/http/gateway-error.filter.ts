import { STATUS_CODES } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { GatewayError, isGatewayErrorCode } from '../../errors/gateway-error.js';
import { uuidV7 } from '../../platform/uuid-v7.js';
import type { Call } from '../call.js';
import { GatewayHttpAdapter } from './gateway-http.adapter.js';
import { sendGatewayError } from './send-error.js';

/** Client errors that may not occur again if the same request is retried. */
const RETRYABLE = [408, 409, 425, 429];

/**
 * Sends an error as a response in the provider's error shape: for forwarded calls, for unknown paths, and for controllers
 * that have no filter of their own.
 */
@Catch()
export class GatewayErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('Proxy');

  constructor(private readonly host: HttpAdapterHost<GatewayHttpAdapter>) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const req = http.getRequest<Request>();
    const id = (req.call as Call | undefined)?.id ?? uuidV7();
    const rejection = this.rejectionFor(error, req, id);
    this.host.httpAdapter.rejections.addRequest(rejection, req, id);
    sendGatewayError(http.getResponse<Response>(), rejection, id, req.originalUrl);
  }

  private rejectionFor(error: unknown, req: Request, id: string): GatewayError {
    if (error instanceof GatewayError) return error;
    const status = error instanceof HttpException ? error.getStatus() : 500;
    if (status >= 500) {
      const stack = error instanceof Error ? error.stack : String(error);
      this.logger.error(`Request ${id} failed`, stack, { request_id: id });
    }
    if (!(error instanceof HttpException) || status < 400)
      return new GatewayError('internal_error', { cause: error });
    // Nest's router found no handler, or could not decode a parameter of the path.
    if (status === 404 && error.message.startsWith(`Cannot ${req.method} `))
      return new GatewayError('not_found');
    if (status === 400 && error.message.startsWith('Failed to decode param'))
      return new GatewayError('invalid_path');
    const code = codeOf(status);
    const message = messageOf(error);
    if (isGatewayErrorCode(code)) return new GatewayError(code, { message });
    const isFinal = status < 500 && !RETRYABLE.includes(status);
    return new GatewayError({ code, status, message, ...(isFinal && { retryable: false }) });
  }
}

/** The name of a status as an error code: `too_many_requests` for 429. */
function codeOf(status: number): string {
  const name = STATUS_CODES[status] ?? `status ${status}`;
  return name.toLowerCase().replace(/[^a-z0-9]+/g, '_');
}

/** Validation pipes set a list of messages. */
function messageOf(error: HttpException): string {
  const response = error.getResponse();
  const message = typeof response === 'object' ? (response as { message?: unknown }).message : undefined;
  return Array.isArray(message) ? message.join('; ') : error.message;
}
