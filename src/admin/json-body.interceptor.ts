import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UnsupportedMediaTypeException,
} from '@nestjs/common';
import express, { type Request, type Response } from 'express';
import type { Observable } from 'rxjs';

const parseJson = express.json({ limit: '100kb', strict: true });

/**
 * Reads JSON bodies of the admin API. The application has no body parser, because forwarded bodies are never touched;
 * and an interceptor, other than a middleware, runs after the guard, so nobody without the token has a body read.
 */
@Injectable()
export class JsonBodyInterceptor implements NestInterceptor {
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const req = http.getRequest<Request>();
    // null: there is no body at all; false: one of another type.
    if (
      req.method !== 'GET' &&
      req.is('application/json') === false &&
      req.headers['content-length'] !== '0'
    ) {
      throw new UnsupportedMediaTypeException(
        'The body must be JSON. Send "Content-Type: application/json".',
      );
    }
    if (req.method !== 'GET') await read(req, http.getResponse<Response>());
    return next.handle();
  }
}

function read(req: Request, res: Response): Promise<void> {
  return new Promise((resolve, reject) => {
    parseJson(req, res, (error?: unknown) => {
      if (error === undefined) resolve();
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- it is what the parser gives
      else reject(error);
    });
  });
}
