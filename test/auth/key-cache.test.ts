import type { Grant } from '../../src/auth/caller.js';
import { KeyCache, MAX_GRANTS } from '../../src/auth/key-cache.js';
import { never } from '../support/never.js';

const grant: Grant = {
  keyId: 'key',
  secretId: 'secret',
  kind: 'key',
  subject: null,
  parents: [],
  teamId: 'team',
  expiresAt: Infinity,
  enabled: true,
  providers: null,
  defaultProvider: null,
  endpoints: 'inference',
  idempotency: 'forward',
  models: [],
  websockets: false,
  onDisconnect: null,
  cache: null,
  streamUsage: [],
};

never('does not keep what was read before a change', () => {
  const cache = new KeyCache();
  const { version } = cache;
  // The key is revoked while the look-up is on its way.
  cache.forget('key');
  expect(cache.set('digest', grant, version)).toBe(false);
  expect(cache.get('digest')).toBeUndefined();
});

never('does not keep what was read before a comparison', () => {
  const cache = new KeyCache();
  const { version } = cache;
  cache.replace([], new Map());
  expect(cache.set('digest', grant, version)).toBe(false);
});

never('forgets the keys of a team, and unknown keys at any change', () => {
  const cache = new KeyCache();
  cache.set('digest', grant, cache.version);
  cache.set('nobody', null, cache.version);
  expect([cache.get('digest')?.grant, cache.get('nobody')]).toEqual([grant, null]);
  cache.forget('team');
  expect([cache.get('digest'), cache.get('nobody')]).toEqual([undefined, undefined]);
});

never('forgets a key that a look-up no longer finds', () => {
  const cache = new KeyCache();
  cache.set('digest', grant, cache.version);
  cache.set('digest', null, cache.version);
  expect(cache.get('digest')).toBeNull();
});

it('evicts tokens for tokens, and never a key', () => {
  const cache = new KeyCache();
  cache.set('static', grant, cache.version);
  const token: Grant = { ...grant, kind: 'exchange', subject: 'job', parents: ['trust'] };
  for (let i = 0; i <= MAX_GRANTS; i++) cache.set(`token ${i}`, token, cache.version);
  expect(cache.get('static')?.grant).toBe(grant);
  expect([cache.get('token 0'), cache.get('token 1')?.grant]).toEqual([undefined, token]);
});

never('puts what a comparison found in place of what it kept', () => {
  const cache = new KeyCache();
  cache.set('revoked', grant, cache.version);
  cache.set('deleted', grant, cache.version);
  cache.replace(cache.digests(), new Map([['revoked', { ...grant, enabled: false }]]));
  expect(cache.get('revoked')?.grant.enabled).toBe(false);
  expect(cache.get('deleted')).toBeUndefined();
});
