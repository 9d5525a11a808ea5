import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import { describeFault } from '../database/database-fault.js';
import { Refusal } from '../refusal.js';
import { sendGatewayError } from './send-gateway-error.js';

/** Turns whatever stopped a call on the road into an answer of the gateway's own. */
@Catch()
export class GatewayErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('Proxy');

  catch(error: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const req = http.getRequest<Request>();
    let refusal: Refusal;
    if (error instanceof Refusal) {
      refusal = error;
      const { cause } = error.options;
      if (cause instanceof Error)
        this.logger.warn(`Call ${req.requestId}: ${error.code}: ${describeFault(cause)}`);
    } else {
      refusal = new Refusal('internal_error', { cause: error });
      this.logger.error(`Call ${req.requestId} failed`, error instanceof Error ? error.stack : String(error));
    }
    sendGatewayError(http.getResponse<Response>(), refusal, req.requestId, req.originalUrl);
  }
}
