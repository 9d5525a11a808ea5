import type { LostEntry, LostRun } from './database-regression.entity.js';

/** What a process takes part in after it has noticed that Postgres is a new server, or has lost transactions. */
export interface Regression {
  /** Of the row of database_regression; null: the server is new, and nothing that is counted was lost. */
  readonly id: string | null;
  /** Start of the Postgres server, `2026-11-22T06:27:13.629123Z`. */
  readonly server: string;
  /** What was written from then on may be lost; null: nothing that is counted was. */
  readonly from: Date | null;
  /** How long the lost time is, in milliseconds. */
  readonly gapMs: number;
  /** The runs that lost something, this one included if it did. */
  readonly runs: ReadonlyMap<string, LostRun>;
  /** Aborted when a later regression is noticed, or the process ends: what is not put back by then comes again. */
  readonly signal: AbortSignal;
}

/** What was put back, for the row of the regression. */
export interface PutBack {
  rows?: number;
  skippedRows?: number;
  claims?: number;
  ends?: number;
  lostEntries?: LostEntry[];
}

/** Puts back what a module knows and Postgres has lost. */
export interface RegressionHandler {
  /**
   * Makes this process reject what it knows to have ended, in memory. It is called at once and before any cache is compared
   * with Postgres; calls go on meanwhile, so it takes milliseconds. It stays in force until `putBack` resolves or `dismissed`
   * is called.
   */
  refuse?(regression: Regression): Promise<void> | void;
  /**
   * Puts back, in statements that change nothing the second time: other processes do the same, and it is called again until
   * it resolves.
   */
  putBack(regression: Regression): Promise<PutBack>;
  /** An administrator has decided that nothing is put back. */
  dismissed?(regression: Regression): void;
}

/** In this order, each after the one before has resolved. */
export const PHASES = ['ends', 'rows', 'claims'] as const;
export type Phase = (typeof PHASES)[number];
