import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { RenewedConnection } from '../database/renewed-connection.js';
import { describeError } from '../errors/describe-error.js';
import { CLOSE_TIMEOUT, patience, withTimeout } from '../platform/patience.js';
import type { Cursors } from './cursors.js';
import type { RegressionState } from './database-regression.entity.js';
import { type Phase, PHASES, type PutBack, type Regression, type RegressionHandler } from './regression.js';
import { addPutBack, note } from './regression-store.js';

const RETRY_MS = 2_000;
const QUERY_TIMEOUT = patience('a comparison with Postgres', 5_000);

type Registered = readonly [Phase, RegressionHandler];
type Noted = Pick<{ id: string; state: RegressionState }, 'id' | 'state'>;

/** The regression, or new server, that this process takes part in. */
export interface Current {
  readonly regression: Regression;
  readonly handlers: readonly Registered[];
  state: RegressionState;
  readonly stop: AbortController;
  /** Counting stops until everything is put back. */
  readonly isOwn: boolean;
}

/** Runs the handlers of the regression that was noticed last. */
export class Recovery {
  current: Current | null = null;
  /** Why not everything is put back yet; null: it is, or nothing is to be. */
  problem: string | null = null;
  /** Of losses. */
  readonly handlers: Registered[] = [];
  /** Of new servers. */
  readonly serverHandlers: Registered[] = [];
  private readonly logger = new Logger('Database');
  private readonly connection: RenewedConnection;
  private working: Promise<void> = Promise.resolve();
  private stopped = false;

  /** @param answer called when everything is put back, or nothing is to be */
  constructor(
    databaseUrl: string,
    private readonly cursors: Cursors,
    private readonly answer: (current: Current, client: ClientBase) => Promise<void>,
  ) {
    this.connection = new RenewedConnection(databaseUrl, {
      applicationName: 'postern-regressions',
      queryTimeout: QUERY_TIMEOUT,
    });
  }

  /** Takes the place of the regression before, of which the rest is not put back. */
  begin(current: Current): void {
    this.current?.stop.abort();
    this.current = current;
    this.work(current);
  }

  /** An administrator has decided. */
  decided(state: RegressionState): void {
    if (this.current === null || this.current.state === state) return;
    this.current.state = state;
    this.work(this.current);
  }

  async end(): Promise<void> {
    this.stopped = true;
    this.current?.stop.abort();
    await withTimeout(CLOSE_TIMEOUT.ms, this.working);
    await this.connection.end();
  }

  /** Begins to take part in what happens after a loss, or on a new server. */
  async prepare(
    noted: Noted | null,
    facts: Omit<Regression, 'id' | 'signal'>,
    isOwn: boolean,
  ): Promise<Current> {
    const stop = new AbortController();
    const regression = { id: noted?.id ?? null, ...facts, signal: stop.signal };
    const handlers = noted === null ? this.serverHandlers : this.handlers;
    const current: Current = { regression, handlers, state: noted?.state ?? 'put_back', stop, isOwn };
    if (noted !== null) this.report(current);
    else this.logger.log('Postgres has started again, or is another server. It has all that was counted.');
    for (const [, handler] of handlers) await handler.refuse?.(regression);
    return current;
  }

  private report({ regression, state }: Current): void {
    const { from, gapMs, runs } = regression;
    if (state === 'another_database') {
      this.logger.error(
        'Postgres is another database than before: it has nothing of what this process and the others have written. Nothing is put back.',
      );
      return;
    }
    const since = from === null ? '' : ` from ${from.toISOString()} on`;
    const decide =
      state === 'waiting'
        ? ` That is more than the journals keep, as after a restored backup: nothing is put back before an administrator decides.`
        : '';
    this.logger.error(
      `Postgres has lost what it had acknowledged${since}: ${Math.ceil(gapMs / 1_000)} s, of ${runs.size} processes.${decide}`,
    );
  }

  /** Puts back, or gives up, what the state asks for; one after the other. */
  private work(current: Current): void {
    this.working = this.working.then(() => this.putBack(current));
  }

  /** Never rejects. */
  private async putBack(current: Current): Promise<void> {
    const { regression, handlers, stop } = current;
    while (!stop.signal.aborted && !this.stopped) {
      try {
        if (current.state === 'dismissed')
          for (const [, handler] of handlers) handler.dismissed?.(regression);
        if (current.state === 'put_back') await this.runHandlers(current);
        if (stop.signal.aborted) return;
        await this.answer(current, await this.connection.open());
        await this.connection.close();
        this.problem = null;
        return;
      } catch (error) {
        if (stop.signal.aborted) return;
        this.problem = `what Postgres has lost is not put back yet: ${describeError(error)}`;
        this.logger.error(`What Postgres has lost is not put back yet: ${describeError(error)}`);
        await this.connection.close();
        await pause(RETRY_MS, stop.signal);
      }
    }
  }

  private async runHandlers({ regression, handlers, stop }: Current): Promise<void> {
    for (const phase of PHASES) {
      for (const [, handler] of handlers.filter(([of]) => of === phase)) {
        if (stop.signal.aborted) return;
        if (phase === 'rows') await this.cursors.passed(await this.connection.open(), stop.signal);
        const counts = await handler.putBack(regression);
        await this.record(regression, counts);
      }
    }
  }

  private async record({ id, server }: Regression, counts: PutBack): Promise<void> {
    if (Object.values(counts).every((value) => (Array.isArray(value) ? value.length === 0 : value === 0)))
      return;
    const client = await this.connection.open();
    let to = id;
    // Less than what is counted, such as one change of an administrator.
    to ??= (await note(client, server, { from: null, gap: 0, state: 'put_back' }, {}, {})).id;
    await addPutBack(client, to, counts);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
