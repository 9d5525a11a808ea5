import { Injectable } from '@nestjs/common';
import type { Request } from 'express';
import type { Grant } from '../../auth/caller.js';
import { allowsEndpoint } from '../../auth/endpoint-rule.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { MAX_STORED_BYTES } from '../../idempotency/body-copy.js';
import { cacheId, CachedResponses } from '../../idempotency/cached-responses.service.js';
import { StoreFailures } from '../../idempotency/store-failures.service.js';
import type { Call } from '../call.js';
import { requestHeaders } from '../headers.js';
import { IdempotentForwarder } from './idempotent-forwarder.js';
import type { PolicyCall } from '../policies/policy-call.js';
import { StoredResponseSender } from './stored-response-sender.js';

/** What a caller may ask for with `x-gateway-cache`. */
const MODES = ['no-store', 'no-cache', 'only-if-cached'] as const;
type Mode = (typeof MODES)[number];

/**
 * Headers that name the client or the single call, which may differ between calls with the same response. Providers may
 * heed any other: if it were left out, a member of a team could choose what the others get.
 */
const HARMLESS =
  /^(?:user-agent|x-stainless-.+|date|x-request-id|request-id|x-client-request-id|x-correlation-id|traceparent|tracestate|baggage|b3|x-b3-.+|sentry-trace|x-datadog-.+|x-amzn-trace-id|x-cloud-trace-context|uber-trace-id|cf-ray)$/;
/** Of a header that is not forwarded, the provider knows nothing. */
const isNamed = (header: string) => header !== '*' && !HARMLESS.test(header);

/**
 * Sends the response of an earlier call with the same request, for keys that have a cache. Guards and policies have run by
 * then.
 */
@Injectable()
export class CachingForwarder {
  constructor(
    private readonly forwarder: IdempotentForwarder,
    private readonly cached: CachedResponses,
    private readonly stored: StoredResponseSender,
    private readonly failures: StoreFailures,
  ) {}

  /**
   * Must the body of the call be gathered? A larger body, or one of unknown length, is streamed, and its response is not
   * cached.
   */
  needsBody({ grant, method, requestBytes }: PolicyCall): boolean {
    if (grant.cache === null) return false;
    return method === 'POST' && requestBytes !== null && requestBytes <= MAX_STORED_BYTES;
  }

  /**
   * @returns settles when the last byte is written or the client's socket is closed
   * @throws GatewayError if nothing was sent to the client yet
   */
  forward(call: Call): Promise<void> {
    if (call.caller.grant.cache !== null) return this.forwardCached(call, call.caller.grant.cache);
    // Most keys have no cache: nothing is looked up or allocated for them.
    if (!mayBeForwarded(call.req))
      throw new GatewayError('not_cached', { message: 'This gateway key has no response cache.' });
    return this.forwarder.forward(call);
  }

  private async forwardCached(call: Call, { ttlSeconds }: NonNullable<Grant['cache']>): Promise<void> {
    const { grant } = call.caller;
    const mode = modeOf(call.req);
    const id = mode === 'no-store' ? null : idOf(call);
    if (id !== null && mode !== 'no-cache') {
      const found = await this.cached.find(id, ttlSeconds);
      if (call.req.socket.destroyed) return;
      if (found !== null) {
        if (await this.stored.sendCached(call, found)) return;
        this.failures.add('cache', 'sending', grant);
      }
    }
    if (mode === 'only-if-cached') throw new GatewayError('not_cached');
    const entry = id === null ? null : this.cached.entry(id, grant, call.id, ttlSeconds, isNamed);
    call.recorder = entry;
    try {
      await this.forwarder.forward(call);
    } finally {
      // Not awaited: Postgres may be slow, and the client has its response.
      void entry?.close();
    }
  }
}

/** Asked of a key without a cache. */
function mayBeForwarded({ headers }: Request): boolean {
  const value = headers['x-gateway-cache'] as string | undefined;
  return value === undefined || value.trim().toLowerCase() !== 'only-if-cached';
}

/** @throws GatewayError invalid_request */
function modeOf({ headers }: Request): Mode | null {
  const value = headers['x-gateway-cache'] as string | undefined;
  if (value === undefined) return null;
  const mode = MODES.find((known) => known === value.trim().toLowerCase());
  if (mode !== undefined) return mode;
  throw new GatewayError('invalid_request', {
    message: `x-gateway-cache must have one of the values ${MODES.join(', ')}, and be sent only once.`,
  });
}

/** What identifies a response: everything that it depends on. @returns null if the response is not cached */
function idOf(call: Call): Buffer | null {
  const { req, caller, target, provider, admitted } = call;
  const { method, rawHeaders } = req;
  const body = admitted?.replacement ?? admitted?.body ?? null;
  const query = target.upstreamPath.slice(target.endpoint.length);
  if (body === null || method !== 'POST') return null;
  // What a provider returns depends on the caller's own credential, which is no part of the ID.
  const providers = call.targetProviders();
  if (providers.some(({ forwardsCredentials }) => forwardsCredentials)) return null;
  if (!allowsEndpoint('inference', method, target.endpoint, rawHeaders, query, provider.endpoints))
    return null;
  // Its own store has the response, and a retry must not get another call's.
  if (caller.grant.idempotency === 'replay' && req.headers['idempotency-key'] !== undefined) return null;
  const { keyId, teamId, cache } = caller.grant;
  const scope = cache!.shared === 'team' ? `team ${teamId}` : `key ${keyId}`;
  const places = providers.flatMap(({ name, origin, basePath, revision }) => [
    name,
    origin,
    basePath,
    revision,
  ]);
  const at = [...places, call.routed?.identity ?? '', method, target.upstreamPath];
  return cacheId([scope, ...at, namedHeaders(rawHeaders), body]);
}

/** The headers that are forwarded: lower-case names and values, sorted by name; values of a name stay in their order. */
function namedHeaders(raw: readonly string[]): string {
  const forwarded = requestHeaders(raw, null);
  const named: [string, string][] = [];
  for (let i = 0; i < forwarded.length; i += 2) {
    const name = forwarded[i]!.toLowerCase();
    if (isNamed(name)) named.push([name, forwarded[i + 1]!]);
  }
  return JSON.stringify(named.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}
