import { createParamDecorator, type ExecutionContext, UseInterceptors } from '@nestjs/common';
import type { Request, Response } from 'express';
import { type Observable, tap } from 'rxjs';
import { Fault } from '../fault.js';

/**
 * Gives each answer of a controller that shows one team, key or provider, other than a list, its strong entity tag (RFC
 * 9110 8.8.3).
 */
export function EntityTags<T extends { version: number | null }>(
  revisionOf: (shown: T) => string,
): ClassDecorator {
  return UseInterceptors({
    intercept: (context: ExecutionContext, next: { handle(): Observable<T | object | undefined> }) =>
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

/**
 * The revisions that If-Match asks for (RFC 9110 13.1.1), or null when any will do.
 *
 * @throws Fault invalid for what is not a list of entity tags
 */
export const IfMatch = createParamDecorator((_: unknown, context: ExecutionContext): string[] | null => {
  const ifMatch = context.switchToHttp().getRequest<Request>().headers['if-match'];
  if (ifMatch === undefined || ifMatch.trim() === '*') return null;
  const tags = ifMatch.split(',').map((tag) => tag.trim());
  if (!tags.every((tag) => /^(W\/)?"[\x21\x23-\x7e]*"$/.test(tag))) {
    throw Fault.of('invalid', 'If-Match', 'must be the ETag of an answer before, with its quotes, or *');
  }
  // Weak tags never match here (RFC 9110 13.1.1).
  return tags.filter((tag) => !tag.startsWith('W/')).map((tag) => tag.slice(1, -1));
});
