import type { EntityManager } from 'typeorm';

/**
 * Runs the work in the transaction of the manager, whose owner commits it; without one, in a new transaction. (TypeORM's
 * `transaction()` would make a savepoint, at whose release the changes would be logged as committed.)
 */
export function transacted<T>(
  manager: EntityManager,
  work: (manager: EntityManager) => Promise<T>,
): Promise<T> {
  return manager.queryRunner?.isTransactionActive ? work(manager) : manager.transaction(work);
}
