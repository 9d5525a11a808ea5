import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { ConsumedRow } from './consumer-rows.js';

/** Gets the rows of the request log. */
export interface LogConsumer {
  /**
   * Where a consumer begins whose name is new: `now`, with calls recorded after the first start with it; `start`, with the
   * oldest row of the log. Default: `now`.
   */
  readonly from?: 'now' | 'start';

  /**
   * Handles up to 1,000 rows, in the order (recorded_at, id). If it throws, everything it did by `manager` is rolled back,
   * and it is called with these rows again; the same if it takes longer than 5 minutes. A row that was updated, such as one whose price came late, comes again.
   *
   * @param manager of the transaction that also stores that the consumer has these rows; the consumer must not end it
   */
  rows(manager: EntityManager, rows: readonly ConsumedRow[]): unknown;
}

/** A consumer, and what it did in this process. */
export interface RegisteredConsumer {
  readonly name: string;
  readonly consumer: LogConsumer;
  rows: number;
  failures: number;
}

/** Gives each row of the request log to a module exactly once, in a transaction in which the module writes to its own tables. */
@Injectable()
export class LogConsumers implements OnApplicationBootstrap {
  private readonly byName = new Map<string, RegisteredConsumer>();
  private isClosed = false;

  /**
   * Registers a consumer. Call in a constructor.
   *
   * @param name what its progress is stored under; stays the same in every release of the module
   * @throws Error if the name is empty or taken, or the gateway has started
   */
  register(name: string, consumer: LogConsumer): void {
    if (name.trim() === '') throw new Error('A consumer of the request log needs a name');
    if (this.isClosed)
      throw new Error(
        `The consumer "${name}" of the request log is registered too late: call register() in a constructor`,
      );
    if (this.byName.has(name)) throw new Error(`Two consumers of the request log have the name "${name}"`);
    this.byName.set(name, { name, consumer, rows: 0, failures: 0 });
  }

  /** Every consumer has been constructed. */
  onApplicationBootstrap(): void {
    this.isClosed = true;
  }

  /** @internal */
  get all(): readonly RegisteredConsumer[] {
    return [...this.byName.values()];
  }
}
