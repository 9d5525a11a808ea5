import { type ArgumentsHost, Catch, HttpException, Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { DatabaseService } from '../database/database.service.js';
import { isDatabaseUnavailable } from '../database/sql-state.js';
import { GatewayError } from '../errors/gateway-error.js';
import { ServiceError } from '../errors/service-error.js';
import { GatewayErrorFilter } from '../proxy/http/gateway-error.filter.js';
import type { GatewayHttpAdapter } from '../proxy/http/gateway-http.adapter.js';

/** Sends errors in the same form as for calls. */
@Catch()
@Injectable()
export class SelfErrorFilter extends GatewayErrorFilter {
  constructor(
    host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly database: DatabaseService,
  ) {
    super(host);
  }

  override catch(error: unknown, host: ArgumentsHost): void {
    super.catch(this.gatewayError(error), host);
  }

  private gatewayError(error: unknown): unknown {
    if (error instanceof GatewayError || error instanceof HttpException) return error;
    if (error instanceof ServiceError)
      return new GatewayError({
        code: 'bad_request',
        status: 400,
        message: error.message,
        retryable: false,
      });
    if (isDatabaseUnavailable(error) || this.database.notReady !== null) {
      return new GatewayError('database_unavailable', {
        message: 'The database is unavailable. Try again.',
        cause: error,
      });
    }
    return error;
  }
}
