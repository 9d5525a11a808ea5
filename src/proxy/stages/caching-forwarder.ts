import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { Grant } from '../../auth/caller.js';
import { allowsEndpoint } from '../../auth/endpoint-rule.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { LARGEST_STORED_BYTES } from '../../idempotency/body-copy.js';
import { cacheId, type CachedResponse, CachedResponses } from '../../idempotency/cached-responses.service.js';
import { ResponseMemory } from '../../idempotency/response-memory.js';
import { StoreFailures } from '../../idempotency/store-failures.service.js';
import { RequestLogService } from '../../request-log/request-log.service.js';
import { requestHeaders } from '../headers.js';
import { IdempotentForwarder } from './idempotent-forwarder.js';
import { CallPolicies } from '../policies/call-policies.js';
import type { CallPolicy } from '../policies/call-policy.js';
import type { PolicyCall } from '../policies/policy-call.js';
import { sendStored } from './replay.js';
import { providersOf } from '../routing/routed-call.js';
import { ResponseWriter } from '../exchange/response-writer.js';

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
 * then. It is a policy as well, so that the bodies of calls with such keys are gathered.
 */
@Injectable()
export class CachingForwarder implements CallPolicy {
  constructor(
    private readonly forwarder: IdempotentForwarder,
    private readonly cached: CachedResponses,
    private readonly memory: ResponseMemory,
    private readonly failures: StoreFailures,
    private readonly log: RequestLogService,
    @InjectSettings() private readonly env: Settings,
    policies: CallPolicies,
  ) {
    policies.register(this);
  }

  appliesTo(grant: Grant): boolean {
    return grant.cache !== null;
  }

  /** A larger body, or one of unknown length, is streamed, and its response is not cached. */
  needsBody({ method, requestBytes }: PolicyCall): boolean {
    return method === 'POST' && requestBytes !== null && requestBytes <= LARGEST_STORED_BYTES;
  }

  admit(): void {}

  /**
   * @param admitted what policies made of the call; null if its key has none
   * @returns settles when the last byte is written or the client's socket is closed
   * @throws GatewayError if nothing was sent to the client yet
   */
  forward(req: Request, res: Response, admitted: PolicyCall | null): Promise<void> {
    if (req.caller.grant.cache !== null) return this.forwardCached(req, res, admitted);
    // Most keys have no cache: nothing is looked up or allocated for them.
    if (!mayBeForwarded(req))
      throw new GatewayError('not_cached', { message: 'This gateway key has no response cache.' });
    return this.forwarder.forward(req, res, admitted, null);
  }

  private async forwardCached(req: Request, res: Response, admitted: PolicyCall | null): Promise<void> {
    const { grant } = req.caller;
    const { ttlSeconds } = grant.cache!;
    const mode = modeOf(req);
    const id = mode === 'no-store' ? null : idOf(req, admitted);
    if (id !== null && mode !== 'no-cache') {
      const found = await this.cached.find(id, ttlSeconds);
      if (req.socket.destroyed) return;
      if (found !== null && (await this.send(req, res, found))) return;
    }
    if (mode === 'only-if-cached') throw new GatewayError('not_cached');
    const entry = id === null ? null : this.cached.entry(id, grant, req.requestId, ttlSeconds, isNamed);
    try {
      await this.forwarder.forward(req, res, admitted, entry);
    } finally {
      // Not awaited: Postgres may be slow, and the client has its response.
      void entry?.close();
    }
  }

  /** @returns false when there is no memory for it: then the call is forwarded */
  private async send(req: Request, res: Response, { response, age }: CachedResponse): Promise<boolean> {
    const bytes = response.body.length;
    const { grant } = req.caller;
    if (!this.memory.replays.reserve(grant, bytes)) {
      this.failures.add('cache', 'sending', grant);
      return false;
    }
    try {
      const writer = new ResponseWriter(req, res, this.env.clientIdleTimeoutMs, () => {});
      const closed = new Promise<void>((resolve) => res.once('close', resolve));
      await sendStored(req, writer, this.log, response, 'cached', [
        'x-gateway-cache',
        'hit',
        'age',
        String(age),
      ]);
      await closed;
    } finally {
      this.memory.replays.free(grant, bytes);
    }
    return true;
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
function idOf(req: Request, admitted: PolicyCall | null): Buffer | null {
  const { caller, target, provider, method, rawHeaders } = req;
  const body = admitted?.replacement ?? admitted?.body ?? null;
  const query = target.upstreamPath.slice(target.endpoint.length);
  if (body === null || method !== 'POST') return null;
  // What a provider returns depends on the caller's own credential, which is no part of the ID.
  const providers = providersOf(req);
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
  const at = [...places, req.routed?.identity ?? '', method, target.upstreamPath];
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
