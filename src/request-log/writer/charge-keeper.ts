import type { ClientBase } from 'pg';
import type { LogRow } from '../columns.js';

/** The provider of the ChargeKeeper, if the gateway has one. The module of the limits provides it. */
export const CHARGE_KEEPER = Symbol('ChargeKeeper');

/** The keeper of budgets in this process: it knows how charges are settled, and hears when they have been. */
export interface ChargeKeeper {
  /**
   * The statement that adds charges to what is spent, to be executed in the transaction that inserts their rows.
   *
   * @param charged a query of them, with one row for each new row of the log
   * @param written a common table expression that `charged` names, with which the statement begins
   * @param result a query with which it ends; absent: it returns nothing
   */
  settlement(charged: string, written?: string, result?: string): string;
  /** Returns what a process run held of limits: it has ended, and its rows are in Postgres. @param run its UUID */
  forgetHolds(client: ClientBase, run: string): Promise<void>;
  /** These rows, with their charges, are in Postgres; or Postgres rejected them, and they never will be. */
  written(rows: readonly LogRow[]): void;
  /** No further row is written by this process. Never rejects. */
  stopped(): Promise<void>;
}
