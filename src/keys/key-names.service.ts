import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

const TEAMS = 'SELECT id, name FROM team WHERE id = ANY($1)';
const KEYS = `
  SELECT k.id, k.name AS key, k.team_id, t.name AS team,
         (SELECT prefix FROM gateway_key_secret WHERE key_id = k.id ORDER BY id DESC LIMIT 1) AS key_prefix
  FROM gateway_key k JOIN team t ON t.id = k.team_id
  WHERE k.id = ANY($1)`;

/** What people need to tell one key from another: its name is unique only within its team. */
export interface KeyLabel {
  key: string;
  key_prefix: string;
  team: string;
  team_id: string;
}

/** Resolves IDs of teams and keys to names, for example for the request log. */
@Injectable()
export class KeyNames {
  constructor(private readonly dataSource: DataSource) {}

  /** Names by ID, without unknown IDs. */
  async ofTeams(ids: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.find<{ id: string; name: string }>(TEAMS, ids);
    return new Map(rows.map(({ id, name }) => [id, name]));
  }

  /** Names, teams and prefixes by ID, without unknown IDs. */
  async ofKeys(ids: readonly string[]): Promise<Map<string, KeyLabel>> {
    const rows = await this.find<KeyLabel & { id: string }>(KEYS, ids);
    return new Map(rows.map(({ id, ...label }) => [id, label]));
  }

  private async find<T extends object>(sql: string, ids: readonly string[]): Promise<T[]> {
    return ids.length === 0 ? [] : this.dataSource.query<T[]>(sql, [[...new Set(ids)]]);
  }
}
