import { createParamDecorator, type ExecutionContext, UseInterceptors } from '@nestjs/common';
import { ApiHeader } from './api-decorators.js';
import type { Request, Response } from 'express';
import { type Observable, tap } from 'rxjs';
import { revisionOf } from '../database/revision.js';
import { ServiceError } from '../errors/service-error.js';

type Versioned = Parameters<typeof revisionOf>[0];

/** `headers` of a response that carries an entity tag, for the OpenAPI document. */
export const ETAG = {
  ETag: {
    description: 'Identifies this state of the object. Send it as `If-Match` to change only this state.',
    schema: { type: 'string' as const },
  },
};

/** Adds a strong entity tag (RFC 9110 8.8.3) to each response of a controller that shows one versioned object. */
export function EntityTags(): ClassDecorator {
  return UseInterceptors({
    intercept: (context: ExecutionContext, next: { handle(): Observable<Versioned | object | undefined> }) =>
      next.handle().pipe(
        tap((shown) => {
          if (shown === undefined || !('version' in shown)) return;
          context
            .switchToHttp()
            .getResponse<Response>()
            .setHeader('ETag', `"${revisionOf(shown)}"`);
        }),
      ),
  });
}

/** Documents If-Match in the OpenAPI document. */
const documented: ParameterDecorator = (target, key) => {
  ApiHeader({
    name: 'If-Match',
    required: false,
    description: '`ETag` of an earlier response. If the object has changed since, the response is 409.',
  })(target, key!, Object.getOwnPropertyDescriptor(target, key!)!);
};

/**
 * The revisions that If-Match asks for (RFC 9110 13.1.1), or null if any matches.
 *
 * @throws ServiceError invalid for what is not a list of entity tags
 */
export const IfMatch = createParamDecorator(
  (_: unknown, context: ExecutionContext): string[] | null => {
    const ifMatch = context.switchToHttp().getRequest<Request>().headers['if-match'];
    if (ifMatch === undefined || ifMatch.trim() === '*') return null;
    const tags = ifMatch.split(',').map((tag) => tag.trim());
    if (!tags.every((tag) => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag))) {
      throw ServiceError.of(
        'invalid',
        'If-Match',
        'must be the ETag of an earlier response, with its quotes, or *',
      );
    }
    // Weak tags never match here (RFC 9110 13.1.1).
    return tags.filter((tag) => !tag.startsWith('W/')).map((tag) => tag.slice(1, -1));
  },
  [documented],
);
