import type { ClientBase } from 'pg';

const WAIT_MS = 60_000;
const CHECK_MS = 250;

type Client = Pick<ClientBase, 'query'>;

/** Reads up to when a reader of the log has read: it never gets rows that are recorded before. Null: it has read none. */
export type ReadCursor = (client: Client) => Promise<Date | null>;

/**
 * How far the readers of the request log are. The clock of a server that was promoted may be behind: rows that are recorded
 * before a cursor would never be read.
 */
export class Cursors {
  private readonly cursors = new Map<string, ReadCursor>();

  /** Call in a constructor. @param name for the log, such as `the roll-up` */
  add(name: string, read: ReadCursor): void {
    this.cursors.set(name, read);
  }

  /**
   * Waits until Postgres's clock is past all of them.
   *
   * @throws Error if it is not after a minute
   */
  async passed(client: Client, signal: AbortSignal): Promise<void> {
    const until = performance.now() + WAIT_MS;
    for (;;) {
      const { rows } = await client.query<{ now: Date }>('SELECT clock_timestamp() AS now');
      const behind: string[] = [];
      for (const [name, read] of this.cursors) {
        const at = await read(client);
        if (at !== null && at >= rows[0]!.now) behind.push(name);
      }
      if (behind.length === 0 || signal.aborted) return;
      if (performance.now() >= until)
        throw new Error(
          `the clock of Postgres is behind what ${behind.join(' and ')} has read; set it right`,
        );
      await new Promise((resolve) => setTimeout(resolve, CHECK_MS));
    }
  }
}
