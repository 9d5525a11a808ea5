import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { Actor } from '../../platform/actor.js';
import type { Role } from './role.js';

/** IDs of the teams whose data may be seen; null: all. */
export type Scope = readonly string[] | null;

/** Who uses the admin API, and what they may do. */
export interface Access {
  readonly actor: Actor;
  readonly role: Role;
  readonly scope: Scope;
  /**
   * The same person or program for good, whatever it is called: `admin-token`, `token:<ID>`, or `sso:<issuer>#<sub>` (no
   * issuer contains `#`, OpenID Connect Discovery 1.0, 3).
   */
  readonly userId: string;
  /** Token that was sent, or that began the session; null for ADMIN_TOKEN and single sign-on. */
  readonly tokenId: string | null;
  /** Session whose cookie was sent; absent for a token. */
  readonly sessionId?: string;
}

declare module 'express-serve-static-core' {
  interface Request {
    /** Set by AdminGuard. */
    access: Access;
  }
}

/** True for a user who signed in at the OpenID provider. */
export function isSingleSignOn({ userId }: Pick<Access, 'userId'>): boolean {
  return userId.startsWith('sso:');
}

/** Parameter decorator: who uses the handler, and what they may do, in a handler behind AdminGuard. */
export const CurrentAccess = createParamDecorator(
  (_: unknown, context: ExecutionContext): Access => context.switchToHttp().getRequest<Request>().access,
);

/** Parameter decorator: the teams whose data the handler may show, in a handler behind AdminGuard. */
export const CurrentScope = createParamDecorator(
  (_: unknown, context: ExecutionContext): Scope => context.switchToHttp().getRequest<Request>().access.scope,
);
