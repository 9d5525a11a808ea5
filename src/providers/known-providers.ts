import type { EntityManager } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';
import { DEFAULT_PROVIDER } from './provider-name.js';

const NAMES = 'SELECT name FROM provider ORDER BY name';

/**
 * Checks names that something is limited to. `default` is always known: the command line may run without the gateway's
 * PROVIDER_URL.
 *
 * @throws ServiceError invalid, naming the providers that there are
 */
export async function mustBeKnownProviders(
  manager: EntityManager,
  names: readonly string[] | null | undefined,
): Promise<void> {
  if (names == null) return;
  const stored = await manager.query<{ name: string }[]>(NAMES);
  const known = [DEFAULT_PROVIDER, ...stored.map(({ name }) => name)];
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw ServiceError.of(
    'invalid',
    'providers',
    `there is no provider ${unknown.join(', ')}; add it first, or choose from ${known.join(', ')}`,
  );
}
