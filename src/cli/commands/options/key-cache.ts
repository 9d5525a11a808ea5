import type { KeyView } from '../../../keys/keys.schema.js';
import { CliError } from '../../cli-error.js';

export interface CacheOptions {
  cache?: string;
  cacheShared?: string;
}

/** The response cache as a field of the admin API; empty if no option was given. @param before the key as it is */
export function cacheOf({ cache, cacheShared: shared }: CacheOptions, before: KeyView | null): object {
  if (cache === undefined && shared === undefined) return {};
  if (cache === 'none') return { cache: null };
  const seconds = cache ?? before?.cache?.ttl_seconds;
  if (seconds === undefined) throw new CliError('--cache-shared needs --cache <seconds>');
  // What is not a number is sent as it is, so that the API names the rule.
  const ttl_seconds = Number.isNaN(Number(seconds)) ? seconds : Number(seconds);
  return { cache: { ttl_seconds, shared: shared ?? before?.cache?.shared ?? 'key' } };
}

export function cacheText({ cache }: Pick<KeyView, 'cache'>): string {
  if (cache === null) return 'none';
  return `${cache.ttl_seconds} s, for ${cache.shared === 'key' ? 'this key' : 'the keys of its team'}`;
}
