import pg from 'pg';
import { createDatabase, type TestDatabase } from '../support/database.js';
import { eventually } from '../support/eventually.js';
import { PostgresRelay } from '../support/postgres-relay.js';
import { LimitExceededError } from '../../src/limits/ledger/limit-errors.js';
import type { Ticket } from '../../src/limits/ledger/ticket.js';
import { LedgerProcess, type LedgerSettings } from './ledger-process.js';
import { KEY, TEAM } from './rules.js';

export interface Recalls {
  count: number;
  onRecall: () => void;
}

/** Ledgers of several processes on one database, some of them behind a relay that can cut them off. */
export class Ledgers {
  relay: PostgresRelay | null = null;
  private readonly engines = new Set<LedgerProcess>();
  private readonly listening: pg.Client[] = [];

  private constructor(readonly database: TestDatabase) {}

  static async start(): Promise<Ledgers> {
    return new Ledgers(await createDatabase());
  }

  async engine(settings: Partial<LedgerSettings> = {}): Promise<LedgerProcess> {
    const started = await LedgerProcess.start({ databaseUrl: this.database.url, ...settings });
    this.engines.add(started);
    return started;
  }

  async behindRelay(settings: Partial<LedgerSettings> = {}): Promise<LedgerProcess> {
    this.relay = await PostgresRelay.to(this.database.url);
    return this.engine({ databaseUrl: this.relay.url, ...settings });
  }

  /** Counts the recalls of what processes hold from now on. */
  async recalls(): Promise<Recalls> {
    const client = new pg.Client({ connectionString: this.database.url });
    this.listening.push(client);
    const recalls: Recalls = { count: 0, onRecall: () => {} };
    client.on('notification', () => {
      recalls.count++;
      recalls.onRecall();
    });
    await client.connect();
    await client.query('LISTEN postern_limit_recall');
    return recalls;
  }

  async stopEngine(engine: LedgerProcess): Promise<void> {
    this.engines.delete(engine);
    await engine.stop();
  }

  async stop(): Promise<void> {
    this.relay?.set('*', 'none');
    await Promise.all([...this.engines].map((engine) => engine.stop()));
    await this.relay?.close();
    await Promise.all(this.listening.map((client) => client.end()));
    await this.database.drop();
  }
}

export const usd = (amount: bigint) => ({ usd: Number(amount), tokens: 0 });

/** A whole call: admitted, logged and charged. */
export async function call(at: LedgerProcess, reserved: bigint, cost = reserved): Promise<void> {
  const ticket = await at.admit(TEAM, KEY, usd(reserved));
  at.begin(ticket, KEY, TEAM).end(cost);
}

/** What rejects a call; fails if it is admitted. */
export async function rejection(admitting: () => Promise<Ticket> | Ticket): Promise<LimitExceededError> {
  try {
    await admitting();
  } catch (error) {
    if (error instanceof LimitExceededError) return error;
    throw error;
  }
  throw new Error('the call was admitted');
}

export const written = (at: LedgerProcess, count: number) =>
  eventually(() => at.writer.counts.persisted >= count);
