import {
  type CallHandler,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  UnsupportedMediaTypeException,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import express, { type Request, type Response } from 'express';
import type { Observable } from 'rxjs';

/** Decorator of a handler: the largest body it reads, such as `4mb`. */
export const LargestBody = Reflector.createDecorator<string>();

const parsers = new Map<string, ReturnType<typeof express.json>>();

function parserFor(limit: string) {
  let parser = parsers.get(limit);
  if (parser === undefined) parsers.set(limit, (parser = express.json({ limit, strict: true })));
  return parser;
}

/**
 * Reads JSON bodies of the admin API. The application has no body parser, because forwarded bodies are never parsed. An
 * interceptor runs after the guard, unlike a middleware, so bodies are read only for requests with the token.
 */
@Injectable()
export class JsonBodyInterceptor implements NestInterceptor {
  constructor(private readonly reflector: Reflector) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const http = context.switchToHttp();
    const req = http.getRequest<Request>();
    // null: there is no body; false: the body has another type.
    if (
      req.method !== 'GET' &&
      req.is('application/json') === false &&
      req.headers['content-length'] !== '0'
    ) {
      throw new UnsupportedMediaTypeException(
        'The body must be JSON. Send "Content-Type: application/json".',
      );
    }
    if (req.method !== 'GET') {
      const limit = this.reflector.get(LargestBody, context.getHandler()) ?? '100kb';
      await read(req, http.getResponse<Response>(), parserFor(limit));
    }
    return next.handle();
  }
}

function read(req: Request, res: Response, parseJson: ReturnType<typeof express.json>): Promise<void> {
  return new Promise((resolve, reject) => {
    parseJson(req, res, (error?: unknown) => {
      if (error === undefined) resolve();
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the parser's own error
      else reject(error);
    });
  });
}
