import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Request } from 'express';
import { lastValueFrom, type Observable, of } from 'rxjs';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import type { CallRecord } from './call-record.js';
import { ClientAddress } from '../config/client-address.js';
import { RequestLogService } from './request-log.service.js';

/** What the road knows of a call when it reaches the log: set before RequestLogInterceptor by the guards. */
export interface CallSubject {
  id: string;
  keyId: string;
  teamId: string;
  key: string;
  provider: string;
  path: string;
  endpoint: string;
}

declare module 'express-serve-static-core' {
  interface Request {
    subject: CallSubject;
  }
}

/**
 * Opens the record of a call before its handler and closes it when the handler's promise settles, which is when the last
 * byte is out or the socket is dead. A promise, not a `tap`: Nest tears an Observable down when the client leaves, and
 * with it the row.
 */
@Injectable()
export class RequestLogInterceptor implements NestInterceptor {
  private readonly clientAddress: ClientAddress;
  private readonly keepsUserAgent: boolean;

  constructor(
    private readonly log: RequestLogService,
    @InjectEnv() env: Settings,
  ) {
    this.clientAddress = new ClientAddress(env.trustedProxies, env.requestLogClient);
    this.keepsUserAgent = env.requestLogClient !== 'none';
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const req = context.switchToHttp().getRequest<Request>();
    const call = this.open(req);
    req.call = call;
    try {
      await lastValueFrom(next.handle());
    } catch (refusal) {
      // The filter is about to answer in our own words: this end waits for the disk as any other.
      if (call.begun) await call.durable();
      throw refusal;
    } finally {
      this.log.close(call);
    }
    return of(undefined);
  }

  private open(req: Request): CallRecord {
    const { headers, subject } = req;
    const forwardedFor = headers['x-forwarded-for'];
    return this.log.open({
      ...subject,
      method: req.method,
      clientIp: this.clientAddress.of(
        req.socket.remoteAddress,
        Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor,
      ),
      userAgent: this.keepsUserAgent ? (headers['user-agent'] ?? null) : null,
      idempotencyKey: (headers['idempotency-key'] as string | undefined) ?? null,
      sdkRetryCount: retryCount(headers['x-stainless-retry-count']),
    });
  }
}

/** The count the OpenAI and Anthropic SDKs send with each attempt. */
function retryCount(header: string | string[] | undefined): number | null {
  return typeof header === 'string' && /^\d{1,5}$/.test(header) ? Number(header) : null;
}
