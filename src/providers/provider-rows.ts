import type { DataSource, EntityManager } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';
import { PROVIDER_NAME } from './provider-name.js';
import { type ProviderRow, SELECT_PROVIDERS } from './provider-view.js';

const FIND = `${SELECT_PROVIDERS} WHERE name = $1`;

/** Changes of providers wait for each other here, so that of two new defaults the later one wins and neither fails. */
const TAKE_TURNS = "SELECT FROM change_counter WHERE name = 'providers' FOR UPDATE";

/**
 * Runs one change of providers in a transaction of its own, in which no other is under way: what `work` reads stays so
 * until it is done.
 */
export function inTurn<T>(dataSource: DataSource, work: (manager: EntityManager) => Promise<T>): Promise<T> {
  return dataSource.transaction(async (manager) => {
    await manager.query(TAKE_TURNS);
    return work(manager);
  });
}

/** @throws ServiceError not_found */
export async function findProvider(manager: EntityManager, name: string): Promise<ProviderRow> {
  // What is no name is no row's; Postgres would not even take some of it as text.
  const [row] = PROVIDER_NAME.test(name) ? await manager.query<ProviderRow[]>(FIND, [name]) : [];
  if (row !== undefined) return row;
  throw ServiceError.of('not_found', 'name', 'no provider has this name; list the providers to find it');
}
