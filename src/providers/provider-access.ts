import { GatewayError } from '../errors/gateway-error.js';
import type { Provider } from './provider.js';

/** Which providers the calls of a key may use. A grant has these members. */
export interface ProviderAccess {
  readonly teamId: string;
  /** Names of providers and routes; null: all that belong to no other team. */
  readonly providers: readonly string[] | null;
  /** Provider or route of the team for calls to `/v1`; null: the default of all teams. */
  readonly defaultProvider: string | null;
}

/**
 * The name of the provider or route of a call: the one in its path; on `/v1` the only one that its key may use, else the
 * default of its team. Null: the default of all teams.
 *
 * @param named provider of `/p/<provider>/…`, or null
 */
export function calledName(
  named: string | null,
  { providers, defaultProvider }: ProviderAccess,
): string | null {
  return named ?? (providers?.length === 1 ? providers[0]! : defaultProvider);
}

/** @throws GatewayError provider_not_allowed if the key is limited to other names */
export function mustBeListed(name: string, { providers }: ProviderAccess): void {
  if (providers !== null && !providers.includes(name)) throw new GatewayError('provider_not_allowed');
}

/** True unless the provider belongs to another team. */
export function isOpenTo({ teamId }: Pick<Provider, 'teamId'>, team: string): boolean {
  return teamId === null || teamId === team;
}

/** Of a provider of another team, and of a route that would send calls to one. */
export function otherTeam(what: 'provider' | 'route'): GatewayError {
  const message = `This ${what} is for another team, so this gateway key may not use it.`;
  return new GatewayError('provider_not_allowed', { message });
}
