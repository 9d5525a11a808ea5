import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { Actor } from '../platform/actor.js';

declare module 'express-serve-static-core' {
  interface Request {
    /** Set by AdminGuard. */
    actor: Actor;
  }
}

/** Parameter decorator: the actor of the request, in a handler behind AdminGuard. */
export const CurrentActor = createParamDecorator(
  (_: unknown, context: ExecutionContext): Actor => context.switchToHttp().getRequest<Request>().actor,
);
