import type { EntityManager } from 'typeorm';
import { countOfChanges } from '../database/change-counter.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import { DEFAULT_PROVIDER, PROVIDER_NAME } from './provider-name.js';
import { type ProviderRow, SELECT_PROVIDERS } from './provider-view.js';

/** Names of providers and of routes are in one space. */
const PROVIDERS = 'SELECT name FROM provider ORDER BY name';
const NAMES = 'SELECT name FROM provider UNION ALL SELECT name FROM route ORDER BY name';
const FIND = `${SELECT_PROVIDERS} WHERE name = $1`;

/** Serializes changes of providers, so that of two new defaults the later one wins and neither fails. */
export const LOCK_CHANGES = `${countOfChanges('providers')} FOR UPDATE`;

/**
 * Runs one change of providers in a transaction. No other change runs at the same time, so what `work` reads stays valid.
 */
export function serialized<T>(
  manager: EntityManager,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return transacted(manager, async (own) => {
    await own.query(LOCK_CHANGES);
    return work(own);
  });
}

/** @throws ServiceError not_found */
export async function findProvider(manager: EntityManager, name: string): Promise<ProviderRow> {
  // Text that is not a valid name matches no row, and Postgres rejects some of it, such as NUL.
  const [row] = PROVIDER_NAME.test(name) ? await manager.query<ProviderRow[]>(FIND, [name]) : [];
  if (row !== undefined) return row;
  throw ServiceError.of('not_found', 'name', 'no provider has this name; list the providers to find it');
}

/**
 * Checks names that something is limited to. `default` is always known: the command line may run without the gateway's
 * PROVIDER_URL.
 *
 * @throws ServiceError invalid, naming the providers that there are
 */
export async function mustBeKnownProviders(
  manager: EntityManager,
  names: readonly string[] | null | undefined,
  field = 'providers',
  { orRoutes = true } = {},
): Promise<void> {
  if (names == null) return;
  const stored = await manager.query<{ name: string }[]>(orRoutes ? NAMES : PROVIDERS);
  const known = [DEFAULT_PROVIDER, ...stored.map(({ name }) => name)];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw ServiceError.of(
    'invalid',
    field,
    `there is no provider ${orRoutes ? 'or route ' : ''}${unknown.join(', ')}; add it first, or choose from ${known.join(', ')}`,
  );
}
