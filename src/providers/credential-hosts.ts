import type { EntityManager } from 'typeorm';
import type { Settings } from '../config/settings.js';
import { ServiceError } from '../errors/service-error.js';
import { DEFAULT_PROVIDER } from './provider-name.js';

type Environment = Pick<Settings, 'providerUrl' | 'providerAuth'>;

const FIND = "SELECT name, url FROM provider WHERE auth = 'client' AND name = ANY ($1) ORDER BY name";
const FIND_ROUTES = `
  SELECT name, (SELECT array_agg(target ->> 'provider') FROM jsonb_array_elements(targets) target) AS providers
  FROM route WHERE targets @> jsonb_build_array(jsonb_build_object('provider', $1::text)) ORDER BY name`;

/**
 * Checks the targets of a route: those with the auth `client` get the caller's own credential, which must not reach two
 * hosts.
 *
 * @param names of providers
 * @throws ServiceError invalid
 */
export async function mustHaveOneCredentialHost(
  manager: EntityManager,
  names: readonly string[],
  env: Environment,
): Promise<void> {
  const found = await clientProviders(manager, names, env);
  if (!areOnTwoHosts(found)) return;
  throw ServiceError.of(
    'invalid',
    'targets',
    `the caller's own credential would be sent to different hosts, because ${namesOf(found)} have the auth "client"; ` +
      'keep those of one host',
  );
}

/**
 * Checks the routes of a provider that was changed in this transaction.
 *
 * @throws ServiceError conflict
 */
export async function mustKeepOneCredentialHost(
  manager: EntityManager,
  provider: string,
  env: Environment,
): Promise<void> {
  const routes = await manager.query<{ name: string; providers: string[] }[]>(FIND_ROUTES, [provider]);
  for (const { name, providers } of routes) {
    const found = await clientProviders(manager, providers, env);
    if (!areOnTwoHosts(found)) continue;
    throw ServiceError.of(
      'conflict',
      'auth',
      `the route ${name} would send the caller's own credential to different hosts, because ${namesOf(found)} have the ` +
        'auth "client"; change the route first',
    );
  }
}

interface Found {
  name: string;
  url: string;
}

async function clientProviders(
  manager: EntityManager,
  names: readonly string[],
  { providerUrl, providerAuth }: Environment,
): Promise<Found[]> {
  const found = await manager.query<Found[]>(FIND, [names]);
  const isOwn = providerUrl !== undefined && providerAuth === 'client' && names.includes(DEFAULT_PROVIDER);
  return isOwn ? [{ name: DEFAULT_PROVIDER, url: providerUrl }, ...found] : found;
}

/** A row that was written by hand may contain anything, so the URL may be invalid. */
function areOnTwoHosts(found: readonly Found[]): boolean {
  return new Set(found.map(({ url }) => (URL.canParse(url) ? new URL(url).origin : url))).size > 1;
}

function namesOf(found: readonly Found[]): string {
  return found.map(({ name }) => name).join(', ');
}
