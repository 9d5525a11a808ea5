import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { EndpointRule, IdempotencyMode } from '../keys/gateway-key.entity.js';

/** What a gateway key allows, as stored: shared between calls, never changed. */
export interface Grant {
  readonly keyId: string;
  /** Which of the key's secrets was sent. */
  readonly secretId: string;
  readonly teamId: string;
  /** Epoch milliseconds of the key's or its secret's end, whichever is first; Infinity: none. */
  readonly expiresAt: number;
  /** False once the key is revoked, ended or disabled, or its team is. */
  readonly enabled: boolean;
  /** Provider names; null: all. */
  readonly providers: readonly string[] | null;
  readonly endpoints: EndpointRule;
  readonly idempotency: IdempotencyMode;
}

/** Who is calling: the grant, and the key as it was sent, so that it can be kept from travelling on. */
export interface Caller {
  readonly grant: Grant;
  readonly key: string;
}

declare module 'express-serve-static-core' {
  interface Request {
    /** Set by GatewayKeyGuard. */
    caller: Caller;
  }
}

/** The authenticated caller, in a handler behind GatewayKeyGuard. */
export const CurrentCaller = createParamDecorator(
  (_: unknown, context: ExecutionContext): Caller => context.switchToHttp().getRequest<Request>().caller,
);
