import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { LogRow } from '../request-log/columns.js';
import { PriceResolver } from './price-resolver.js';

/** Bounds what clients that make up model names can add, for each process and day. */
const MAX_A_DAY = 10_000;
const DAY_LENGTH = '2031-01-31'.length;

export interface UnpricedDay {
  provider: string;
  model: string;
  /** UTC, `2031-01-31`. */
  day: string;
}

const NOTE = `
  INSERT INTO unpriced_model (provider, model, day) SELECT * FROM unnest($1::text[], $2::text[], $3::date[])
  ON CONFLICT DO NOTHING`;

const LIST = `
  SELECT provider, model, to_char(min(day), 'YYYY-MM-DD') AS first_day, to_char(max(day), 'YYYY-MM-DD') AS last_day
  FROM unpriced_model WHERE day > (now() AT TIME ZONE 'UTC')::date - $1::int AND priced_at IS NULL
  GROUP BY 1, 2 ORDER BY 1, 2`;

/** Models that were called without having a price, by day: what an operator should set, and what the repair looks for. */
@Injectable()
export class UnpricedModels {
  /** What this process has stored already. */
  private readonly noted = new Set<string>();
  private today = '';
  private readonly waiting = new Map<string, UnpricedDay>();
  private saving: Promise<void> | null = null;

  constructor(
    private readonly dataSource: DataSource,
    resolver: PriceResolver,
  ) {
    // The repair deletes what has a price now. Should it lose it again, it is stored again.
    resolver.onChange(() => this.noted.clear());
  }

  /** Notes that this row has no price. */
  add({ provider, model, started_at: startedAt }: LogRow): void {
    const day = startedAt.slice(0, DAY_LENGTH);
    if (day > this.today) {
      this.today = day;
      this.noted.clear();
    }
    const key = `${day}\n${provider}\n${model}`;
    if (this.noted.has(key) || this.waiting.has(key)) return;
    if (this.noted.size + this.waiting.size >= MAX_A_DAY) return;
    this.waiting.set(key, { provider, model: model!, day });
  }

  /** Stores what was added, at most once at a time; null: there is nothing. What fails is stored by the next call. */
  save(): Promise<void> | null {
    if (this.waiting.size === 0) return this.saving;
    if (this.saving === null) {
      this.saving = this.store().finally(() => (this.saving = null));
      // A caller that has stopped waiting does not see the error, which would end the process.
      this.saving.catch(() => {});
    }
    return this.saving;
  }

  /** Models called in the last days. */
  list(days: number): Promise<{ provider: string; model: string; first_day: string; last_day: string }[]> {
    return this.dataSource.query(LIST, [days]);
  }

  private async store(): Promise<void> {
    const { waiting } = this;
    const days = [...waiting.values()];
    const columns = (['provider', 'model', 'day'] as const).map((name) => days.map((day) => day[name]));
    await this.dataSource.query(NOTE, columns);
    for (const key of [...waiting.keys()].slice(0, days.length)) {
      waiting.delete(key);
      this.noted.add(key);
    }
  }
}
