import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { TEAM_GROUPS } from '../teams/team-groups.js';
import { type GroupedAnnotation, KEY_ANNOTATIONS } from './key-annotations.js';

const TEAMS = 'SELECT id, name FROM team WHERE id = ANY($1)';
/** Revoked and disabled keys too. */
const KEYS = `
  SELECT k.id, k.name, t.name AS team, (
    SELECT prefix FROM gateway_key_secret WHERE key_id = k.id AND kind = 'key' ORDER BY id DESC LIMIT 1) AS prefix
  FROM gateway_key k JOIN team t ON t.id = k.team_id WHERE k.id = ANY($1)`;

/** What people know a key by: names are unique within a team only. */
export interface KeyName {
  name: string;
  team: string;
  /** First characters of its newest secret; null if it has none. */
  prefix: string | null;
}

/** Resolves IDs of teams and keys to names, for example for the request log. */
@Injectable()
export class KeyNames {
  /** @internal */
  constructor(private readonly dataSource: DataSource) {}

  /** Names by ID, without unknown IDs. */
  async ofTeams(ids: readonly string[]): Promise<Map<string, string>> {
    const teams = await this.find<{ name: string }>(TEAMS, ids);
    return new Map(teams.map(({ id, name }) => [id, name]));
  }

  /** Names by ID, without unknown IDs. */
  async ofKeys(ids: readonly string[]): Promise<Map<string, KeyName>> {
    const keys = await this.find<KeyName>(KEYS, ids);
    return new Map(keys.map(({ id, ...key }) => [id, key]));
  }

  /** Cost centers by the ID of the key, without keys that have none. @internal */
  costCenters(): Promise<Map<string, string>> {
    return this.annotations('cost_center');
  }

  /** Owners or cost centers by the ID of the key, without keys that have none. @internal */
  async annotations(name: GroupedAnnotation): Promise<Map<string, string>> {
    const rows = await this.dataSource.query<{ key_id: string; value: string }[]>(
      `SELECT key_id, ${name} AS value FROM (${KEY_ANNOTATIONS}) AS keys WHERE ${name} IS NOT NULL`,
    );
    return new Map(rows.map(({ key_id, value }) => [key_id, value]));
  }

  /** The IDs of the keys that have this owner and this cost center, of their own or of their team. @internal */
  async idsOf({ owner, cost_center: center }: { owner?: string; cost_center?: string }): Promise<string[]> {
    const rows = await this.dataSource.query<{ key_id: string }[]>(
      `SELECT key_id FROM (${KEY_ANNOTATIONS}) AS keys
       WHERE ($1::text IS NULL OR owner = $1) AND ($2::text IS NULL OR cost_center = $2)`,
      [owner ?? null, center ?? null],
    );
    return rows.map(({ key_id }) => key_id);
  }

  /**
   * Groups by the ID of the team, without teams that are in none.
   *
   * @internal
   */
  async groups(): Promise<Map<string, string>> {
    const rows = await this.dataSource.query<{ team_id: string; team_group: string }[]>(TEAM_GROUPS);
    return new Map(rows.map(({ team_id, team_group }) => [team_id, team_group]));
  }

  private async find<T>(sql: string, ids: readonly string[]): Promise<(T & { id: string })[]> {
    return ids.length === 0 ? [] : this.dataSource.query(sql, [[...new Set(ids)]]);
  }
}
