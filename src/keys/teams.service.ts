import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { idOfCursor, isUuid, type Page, pageOf, type PageRequest } from '../database/page.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { Fault } from '../fault.js';
import { insertTeam } from './insert-key.js';

/** A team as people and programs see it. */
export interface TeamView {
  id: string;
  name: string;
  disabled: boolean;
  /** ISO 8601 in UTC */
  created_at: string;
}

type TeamRow = Omit<TeamView, 'created_at'> & { created_at: Date };

const SELECT_TEAMS = 'SELECT id, name, disabled, created_at FROM team';
const LIST = `${SELECT_TEAMS} WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2`;
const FIND_BY_ID = `${SELECT_TEAMS} WHERE id = $1`;
const FIND_BY_NAME = `${SELECT_TEAMS} WHERE name = $1`;

/** Makes and finds the teams that keys belong to. */
@Injectable()
export class TeamsService {
  constructor(private readonly dataSource: DataSource) {}

  /** @throws Fault conflict when the name is taken, invalid when it could be mistaken for an id */
  async create({ name }: { name: string }): Promise<TeamView> {
    if (isUuid(name)) throw Fault.of('invalid', 'name', 'must not look like an id; choose a word');
    try {
      return await this.resolve(await insertTeam(this.dataSource.manager, name));
    } catch (error) {
      if (!isUniqueViolation(error, 'team_name_key')) throw error;
      throw Fault.of('conflict', 'name', 'a team of this name exists already; choose another');
    }
  }

  /** Newest first. @throws Fault invalid for a foreign cursor */
  async list({ limit, cursor }: PageRequest): Promise<Page<TeamView>> {
    const rows = await this.dataSource.query<TeamRow[]>(LIST, [idOfCursor(cursor), limit + 1]);
    return pageOf(rows, limit, teamView);
  }

  /**
   * The team of this name or id: no name looks like an id, so there is one answer.
   *
   * @throws Fault not_found
   */
  async resolve(nameOrId: string): Promise<TeamView> {
    const sql = isUuid(nameOrId) ? FIND_BY_ID : FIND_BY_NAME;
    const [row] = await this.dataSource.query<TeamRow[]>(sql, [nameOrId]);
    if (row === undefined) {
      throw Fault.of('not_found', 'team', 'no team has this name or id; list the teams, or create it first');
    }
    return teamView(row);
  }
}

function teamView(row: TeamRow): TeamView {
  return { id: row.id, name: row.name, disabled: row.disabled, created_at: row.created_at.toISOString() };
}
