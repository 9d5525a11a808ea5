import { Injectable } from '@nestjs/common';
import { InjectEnv } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { Refusal } from '../refusal.js';
import { makeProvider, type Provider } from './provider.js';

/** The name of the provider that PROVIDER_URL and PROVIDER_KEY describe. */
export const DEFAULT_PROVIDER = 'default';

/** Knows the providers and which of them a call goes to. */
@Injectable()
export class ProvidersService {
  private readonly fallback: Provider | null;

  constructor(@InjectEnv() env: Settings) {
    this.fallback = env.providerUrl
      ? makeProvider(DEFAULT_PROVIDER, env.providerUrl, env.providerAuth, env.providerKey ?? null)
      : null;
  }

  /**
   * The provider of a call: the one its path names; on `/v1` the one its key is bound to, else the default.
   *
   * @param named provider of `/p/<provider>/…`, or null
   * @param allowed names the key may use, null: all
   * @throws Refusal provider_not_allowed, provider_not_found, no_provider_configured
   */
  resolve(named: string | null, allowed: readonly string[] | null): Provider {
    const name = named ?? (allowed?.length === 1 ? allowed[0]! : DEFAULT_PROVIDER);
    if (allowed !== null && !allowed.includes(name)) throw new Refusal('provider_not_allowed');
    if (name === DEFAULT_PROVIDER && this.fallback !== null) return this.fallback;
    throw new Refusal(
      named === null && name === DEFAULT_PROVIDER ? 'no_provider_configured' : 'provider_not_found',
    );
  }
}
