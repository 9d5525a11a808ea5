import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

const TEAMS = 'SELECT id, name FROM team WHERE id = ANY($1)';
const KEYS = 'SELECT id, name FROM gateway_key WHERE id = ANY($1)';

/** Resolves IDs of teams and keys to names, for example for the request log. */
@Injectable()
export class KeyNames {
  constructor(private readonly dataSource: DataSource) {}

  /** Names by ID, without unknown IDs. */
  ofTeams(ids: readonly string[]): Promise<Map<string, string>> {
    return this.find(TEAMS, ids);
  }

  /** Names by ID, without unknown IDs. */
  ofKeys(ids: readonly string[]): Promise<Map<string, string>> {
    return this.find(KEYS, ids);
  }

  private async find(sql: string, ids: readonly string[]): Promise<Map<string, string>> {
    if (ids.length === 0) return new Map();
    const rows = await this.dataSource.query<{ id: string; name: string }[]>(sql, [[...new Set(ids)]]);
    return new Map(rows.map(({ id, name }) => [id, name]));
  }
}
