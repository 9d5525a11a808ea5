import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { idOfCursor, isUuid, type Page, pageOf, type PageRequest } from '../database/page.js';
import { isUniqueViolation } from '../database/sql-state.js';
import { Fault } from '../fault.js';
import { insertKey, type KeyGrant } from './insert-key.js';
import {
  KEY_STATUS_SQL,
  type KeyRow,
  type KeyStatus,
  keyView,
  type KeyView,
  SELECT_KEYS,
} from './key-view.js';
import { TeamsService } from './teams.service.js';

/** What a new key is to be; `team` is a name or an id. */
export type NewKey = KeyGrant & { team: string };

export interface KeyFilter extends PageRequest {
  /** Name or id. */
  team?: string;
  /** The beginning of any secret of the key, also of one that was rotated away. */
  prefix?: string;
  status?: KeyStatus;
}

/** The only moment at which a secret exists outside its holder's hands. */
export interface IssuedKey {
  key: KeyView;
  secret: string;
}

const FIND = `${SELECT_KEYS} WHERE k.id = $1`;

const LIST = `${SELECT_KEYS}
  WHERE ($1::uuid IS NULL OR k.team_id = $1)
    AND ($2::text IS NULL OR EXISTS (
      SELECT FROM gateway_key_secret WHERE key_id = k.id AND starts_with(prefix, $2)))
    AND ($3::text IS NULL OR $3 = ${KEY_STATUS_SQL})
    AND ($4::uuid IS NULL OR k.id < $4)
  ORDER BY k.id DESC
  LIMIT $5`;

/** The first revocation's time stays: it is when the key stopped working. */
const REVOKE = 'UPDATE gateway_key SET revoked_at = COALESCE(revoked_at, now()) WHERE id = $1';

/** Issues, shows and revokes gateway keys. */
@Injectable()
export class KeysService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly teams: TeamsService,
  ) {}

  /**
   * Issues a key; its secret is in the answer and nowhere else.
   *
   * @throws Fault not_found for an unknown team, conflict when the team has a key of this name, revoked ones included
   */
  async create({ team, ...grant }: NewKey): Promise<IssuedKey> {
    const { id: teamId } = await this.teams.resolve(team);
    try {
      const { id, secret } = await this.dataSource.transaction((manager) =>
        insertKey(manager, teamId, grant),
      );
      return { key: await this.get(id), secret };
    } catch (error) {
      if (!isUniqueViolation(error, 'gateway_key_team_id_name_key')) throw error;
      throw Fault.of('conflict', 'name', 'this team has a key of this name already; choose another');
    }
  }

  /** Newest first. @throws Fault not_found for an unknown team, invalid for a foreign cursor */
  async list({ team, prefix, status, limit, cursor }: KeyFilter): Promise<Page<KeyView>> {
    const after = idOfCursor(cursor);
    const teamId = team === undefined ? null : (await this.teams.resolve(team)).id;
    const values = [teamId, prefix ?? null, status ?? null, after, limit + 1];
    return pageOf(await this.dataSource.query<KeyRow[]>(LIST, values), limit, keyView);
  }

  /** @throws Fault not_found */
  async get(id: string): Promise<KeyView> {
    const [row] = isUuid(id) ? await this.dataSource.query<KeyRow[]>(FIND, [id]) : [];
    if (row === undefined) throw Fault.of('not_found', 'id', 'no key has this id; list the keys to find it');
    return keyView(row);
  }

  /** Ends a key for good. Revoking it again changes nothing. @throws Fault not_found */
  async revoke(id: string): Promise<KeyView> {
    if (isUuid(id)) await this.dataSource.query(REVOKE, [id]);
    return this.get(id);
  }
}
