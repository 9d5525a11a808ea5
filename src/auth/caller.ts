import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import type { OnDisconnect } from '../providers/on-disconnect.js';
import type { StreamUsage } from '../teams/model-rules.js';
import type { GrantedSettings } from '../keys/gateway-key.entity.js';
import type { SecretKind } from '../keys/gateway-key-secret.entity.js';

/** What a gateway key allows, as stored. Shared between calls and immutable. */
export interface Grant extends Readonly<GrantedSettings> {
  readonly keyId: string;
  /** ID of the secret that was sent. */
  readonly secretId: string;
  /** `key`: a static secret was sent; `sign_in` or `exchange`: a token. */
  readonly kind: SecretKind;
  /** Whom the token was issued to; null for a static secret. */
  readonly subject: string | null;
  /** IDs of what the token ends with, besides its key and team; empty for a static secret. @internal */
  readonly parents: readonly string[];
  readonly teamId: string;
  /** Expiry time of the key or its secret, whichever is first, in epoch milliseconds; Infinity if none. */
  readonly expiresAt: number;
  /** False if the key is revoked, expired or disabled, or its team is disabled. */
  readonly enabled: boolean;
  /** Names of providers and routes that the key may use; null for all that belong to no other team. */
  readonly providers: readonly string[] | null;
  /** Provider or route of the team for calls to `/v1`; null for the default of all teams. */
  readonly defaultProvider: string | null;
  /** Lists of patterns of model names, of the key and of its team: a model must be on each. Empty allows all. */
  readonly models: readonly (readonly string[])[];
  /** Rules for the usage of streams, of the key and of its team, without `as_sent`. */
  readonly streamUsage: readonly StreamUsage[];
  /** The response cache; null for none. `shared`: whose responses the key may get. */
  readonly cache: { readonly ttlSeconds: number; readonly shared: 'key' | 'team' } | null;
  /** What happens to a call whose client disconnects; null: as its provider says. */
  readonly onDisconnect: OnDisconnect | null;
}

/** The authenticated caller: its grant, and the key as it was sent, so that it can be removed before forwarding. */
export interface Caller {
  readonly grant: Grant;
  readonly key: string;
  /** Version of the key cache when the grant was found; undefined: it comes from a guard of another module. @internal */
  readonly version?: number;
}

declare module 'express-serve-static-core' {
  interface Request {
    /** Set by GatewayKeyGuard. Undefined in a global guard, which runs before it, and for controllers without it. */
    caller: Caller;
  }
}

/**
 * The authenticated caller of a request behind GatewayKeyGuard.
 *
 * @throws Error if the key was not checked
 */
export function callerOf(req: Request): Caller {
  const { caller } = req as Partial<Request>;
  if (caller !== undefined) return caller;
  throw new Error(
    'The caller is unknown: GatewayKeyGuard has not run. Global guards run before it, so use a global interceptor ' +
      '(APP_INTERCEPTOR) instead; a controller of your own needs @UseGuards(GatewayKeyGuard).',
  );
}

/** Parameter decorator: the authenticated caller of the request, behind GatewayKeyGuard. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller =>
  callerOf(context.switchToHttp().getRequest<Request>()),
);
