import { Injectable } from '@nestjs/common';
import type { Scope } from '../admin/access/access.js';
import { patternsOf } from '../database/search-text.js';
import { ReaderPool } from '../requests/reader-pool.js';

const FIND = `
  SELECT model FROM usage_day
  WHERE slot >= now() - make_interval(days => $2) AND model ILIKE ALL ($1)
    AND ($3::uuid[] IS NULL OR team_id = ANY ($3))
  GROUP BY model ORDER BY sum(calls) DESC, model LIMIT $4`;

/** How far back models are searched, in days. */
export const MODELS_OF_DAYS = 30;

/** Finds models by a part of their names, in the sums of the log. */
@Injectable()
export class UsedModels {
  constructor(private readonly pool: ReaderPool) {}

  /** Models of the last 30 days in whose name each word of the text occurs, those with most calls first. */
  async find(text: string, scope: Scope, limit: number): Promise<string[]> {
    const values = [patternsOf(text), MODELS_OF_DAYS, scope, limit];
    const { rows } = await this.pool.of(scope).query<{ model: string }>(FIND, values);
    return rows.map(({ model }) => model);
  }
}
