import type { EntityManager } from 'typeorm';

/** What services use of a data source. Of one that is part of a transaction, all work belongs to that transaction. */
export interface Transactions {
  readonly manager: EntityManager;
  query<T>(sql: string, values?: unknown[]): Promise<T>;
  transaction<T>(work: (manager: EntityManager) => Promise<T>): Promise<T>;
}

/** Makes the transactions of a service part of the one of this manager, whose owner commits it. */
export function inTransaction(manager: EntityManager): Transactions {
  return {
    manager,
    query: (sql, values) => manager.query(sql, values),
    transaction: (work) => work(manager),
  };
}

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
