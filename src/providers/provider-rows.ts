import type { EntityManager } from 'typeorm';
import type { Scope } from '../admin/access/access.js';
import { countOfChanges } from '../database/change-counter.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import { DEFAULT_PROVIDER, PROVIDER_NAME } from './provider-name.js';
import { type ProviderRow, SELECT_PROVIDERS } from './provider-view.js';

const NAMES = 'SELECT name FROM provider ORDER BY name';
const FIND = `${SELECT_PROVIDERS} WHERE name = $1 AND ($2::uuid[] IS NULL OR team_id = ANY ($2))`;

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

/** @param scope of these teams: others are not found @throws ServiceError not_found */
export async function findProvider(
  manager: EntityManager,
  name: string,
  scope: Scope = null,
): Promise<ProviderRow> {
  // Text that is not a valid name matches no row, and Postgres rejects some of it, such as NUL.
  const [row] = PROVIDER_NAME.test(name) ? await manager.query<ProviderRow[]>(FIND, [name, scope]) : [];
  if (row !== undefined) return row;
  throw ServiceError.of('not_found', 'name', 'no provider has this name; list the providers to find it');
}

/**
 * Checks names of providers. `default` is always known: the command line may run without the gateway's
 * PROVIDER_URL.
 *
 * @throws ServiceError invalid, naming the providers that there are
 */
export async function mustBeKnownProviders(
  manager: EntityManager,
  names: readonly string[],
  field: string,
): Promise<void> {
  const stored = await manager.query<{ name: string }[]>(NAMES);
  const known = [DEFAULT_PROVIDER, ...stored.map(({ name }) => name)];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw ServiceError.of(
    'invalid',
    field,
    `there is no provider ${unknown.join(', ')}; add it first, or choose from ${known.join(', ')}`,
  );
}
