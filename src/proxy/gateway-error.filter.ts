import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { GatewayError } from '../errors/gateway-error.js';
import { GatewayHttpAdapter } from './gateway-http.adapter.js';
import { sendGatewayError } from './send-gateway-error.js';

/**
 * Turns whatever stopped a call into an answer of the gateway's own: on the road, and wherever no room has its own form of
 * faults, as on roads that nobody has.
 */
@Catch()
export class GatewayErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('Proxy');

  constructor(private readonly host: HttpAdapterHost<GatewayHttpAdapter>) {}

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const req = http.getRequest<Request>();
    let refusal: GatewayError;
    if (error instanceof GatewayError) {
      refusal = error;
    } else if (error instanceof HttpException && error.getStatus() < 500) {
      // The router's own: it knows no such road, or could not decode a parameter.
      refusal = new GatewayError(error.getStatus() === 404 ? 'not_found' : 'invalid_path');
    } else {
      refusal = new GatewayError('internal_error', { cause: error });
      const stack = error instanceof Error ? error.stack : String(error);
      this.logger.error(`Call ${req.requestId} failed`, stack, { request_id: req.requestId });
    }
    this.host.httpAdapter.refusals.ofRequest(refusal, req);
    sendGatewayError(http.getResponse<Response>(), refusal, req.requestId, req.originalUrl);
  }
}
