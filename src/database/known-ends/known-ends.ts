import { Injectable } from '@nestjs/common';

/** IDs of each kind that are remembered; older ones are in files until Postgres is the server that had them. */
const MOST = 10_000;

/** Of the Postgres server that runs a query: when it started, as text, because the microseconds tell two servers apart. */
export const SERVER_STARTED = `to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/**
 * What this process knows to have ended: revoked keys, ended tokens, sessions and people. Postgres knows it too, unless it
 * was replaced by a server without the last transactions. It is asked where rows are read from Postgres, not for calls whose
 * key is cached.
 */
@Injectable()
export class KnownEnds {
  /** IDs of what never works again, the one that was read last at the end. */
  private readonly final = new Set<string>();
  /** By ID: the settings that stop it, and since when (ms since 1970). It works again when somebody sets them so. */
  private readonly stopped = new Map<string, Map<string, number>>();
  /** The server that has all of them, as SERVER_STARTED says it; null: none yet. */
  private confirmed: string | null = null;
  private readonly listeners: ((ids: readonly string[]) => void)[] = [];

  /** @param listener gets the IDs of which it has changed whether they are rejected: what was read of them is to be read again */
  onChanged(listener: (ids: readonly string[]) => void): void {
    this.listeners.push(listener);
  }

  /** @param isAll false: the oldest are forgotten if there are too many */
  end(id: string, isAll = false): void {
    this.final.delete(id);
    this.final.add(id);
    if (!isAll) removeOldest(this.final);
  }

  /** @param setting such as `disabled` @param since ms since 1970 @param isAll as for end() */
  stop(id: string, setting: string, since: number, isAll = false): void {
    const settings = this.stopped.get(id) ?? new Map<string, number>();
    this.stopped.delete(id);
    this.stopped.set(id, settings.set(setting, since));
    if (!isAll) removeOldest(this.stopped);
  }

  /** Somebody has set it so that it works again. */
  start(id: string, setting: string): void {
    const settings = this.stopped.get(id);
    if (settings?.delete(setting) !== true) return;
    if (settings.size === 0) this.stopped.delete(id);
    this.report([id]);
  }

  /** Whether it has ended for good. */
  hasEnded(id: string): boolean {
    return this.final.has(id);
  }

  /**
   * Whether what depends on these is rejected, whatever Postgres says. What may work again is rejected only while Postgres
   * is a server of which it is unknown whether it has everything.
   *
   * @param server that the row was read from
   */
  reject(ids: readonly string[], server: string): boolean {
    if (this.final.size > 0 && ids.some((id) => this.final.has(id))) return true;
    if (this.stopped.size === 0 || server === this.confirmed) return false;
    return ids.some((id) => {
      for (const since of this.stopped.get(id)?.values() ?? []) if (since <= Date.now()) return true;
      return false;
    });
  }

  /** The server has everything that this process knows. */
  confirm(server: string): void {
    if (this.confirmed === server) return;
    this.confirmed = server;
    this.report([...this.stopped.keys()]);
  }

  /** Postgres may not have these, and an administrator decides. */
  doubt(ids: readonly string[]): void {
    this.confirmed = null;
    this.report(ids);
  }

  /** An administrator has decided that what the server has is right. */
  forget(server: string): void {
    const ids = [...this.final, ...this.stopped.keys()];
    this.final.clear();
    this.stopped.clear();
    this.confirmed = server;
    this.report(ids);
  }

  private report(ids: readonly string[]): void {
    if (ids.length > 0) for (const listener of this.listeners) listener(ids);
  }
}

function removeOldest(ids: Set<string> | Map<string, unknown>): void {
  if (ids.size <= MOST) return;
  const [oldest] = ids.keys();
  ids.delete(oldest!);
}
