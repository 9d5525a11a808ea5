import { z } from 'zod';

const CACHE_SCOPES = ['key', 'team'] as const;

const TTL = 'must be an integer from 1 to 604800 (7 days)';
const SHARED = 'must be key or team';
const CACHE = 'must be {"ttl_seconds", "shared"}, or null for no cache';

const ttl_seconds = z.int(TTL).min(1, TTL).max(604_800, TTL).meta({
  description: 'How long a response is returned for calls with the same request, in seconds.',
  example: 3600,
});
const SHARED_ABOUT =
  '`key`: only this key gets its responses; `team`: all keys of the team that have this setting share theirs.';
const shared = z.enum(CACHE_SCOPES, SHARED);

/** The response cache of a key, as it is stored and shown. */
export const keyCacheSchema = z
  .strictObject({ ttl_seconds, shared: shared.meta({ description: SHARED_ABOUT }) })
  .meta({ id: 'KeyCache' });
export type KeyCache = z.output<typeof keyCacheSchema>;

export const newKeyCacheSchema = z
  .strictObject({ ttl_seconds, shared: shared.default('key').meta({ description: SHARED_ABOUT }) }, CACHE)
  .meta({ id: 'NewKeyCache' });

export const CACHE_ABOUT =
  'Returns the response of an earlier call with exactly the same request, without calling the provider; null: no cache.';
