import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { type Access, isSingleSignOn } from '../access/access.js';
import { digestToken, generateToken, TOKEN_SHOWN_LENGTH } from '../access/token-format.js';
import { recordChange } from '../../audit/record-change.js';
import { idOfCursor, isUuid, type Page, pageOf, type PageRequest } from '../../database/page.js';
import { isUniqueViolation } from '../../database/sql-state.js';
import { ServiceError } from '../../errors/service-error.js';
import type { Actor } from '../../platform/actor.js';
import { TeamsService } from '../../teams/teams.service.js';
import type { IssuedTokenView, NewToken, TokenView } from './tokens.schema.js';

/** Longest lifetime of a token that a user of single sign-on creates, in days. */
const SINGLE_SIGN_ON_DAYS = 90;

type TokenRow = Omit<TokenView, 'created_at' | 'expires_at' | 'last_used_at'> & {
  created_at: Date;
  expires_at: Date | null;
  last_used_at: Date | null;
};

const SELECT = `
  SELECT id, name, prefix, role, created_at, expires_at, last_used_at,
         CASE WHEN teams IS NOT NULL THEN COALESCE(
           (SELECT json_agg(json_build_object('id', id, 'name', name) ORDER BY name) FROM team
            WHERE id = ANY (admin_token.teams)), '[]') END AS teams
  FROM admin_token`;
const LIST = `${SELECT} WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2`;
const FIND = `${SELECT} WHERE id = $1`;
const INSERT = `
  INSERT INTO admin_token (id, name, digest, prefix, role, teams, expires_at)
  VALUES ($1, $2, decode($3, 'hex'), $4, $5, $6, $7)`;
const EXPIRY = 'SELECT expires_at FROM admin_token WHERE id = $1';
const REMOVE = 'DELETE FROM admin_token WHERE id = $1 RETURNING id';

/** Creates, lists and revokes tokens of the admin API. */
@Injectable()
export class TokensService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly teams: TeamsService,
  ) {}

  /**
   * Creates a token. The result contains it; only its digest is stored.
   *
   * @throws ServiceError not_found for an unknown team; conflict if the name is taken; invalid if it would live too long
   */
  async create({ name, role, teams, expires_at }: NewToken, by: Access): Promise<IssuedTokenView> {
    const expiresAt = await this.expiryOf(expires_at, by);
    const found = teams && (await Promise.all(teams.map((team) => this.teams.resolve(team))));
    const scope = found && [...new Set(found.map(({ id }) => id))];
    const token = generateToken();
    const id = uuidv7();
    const values = [id, name, digestToken(token), token.slice(0, TOKEN_SHOWN_LENGTH), role, scope, expiresAt];
    try {
      return await this.dataSource.transaction(async (manager) => {
        await manager.query(INSERT, values);
        const after = await find(manager, id);
        await recordChange(manager, by.actor, { action: 'created', type: 'token', before: null, after });
        return { ...after, token };
      });
    } catch (error) {
      if (!isUniqueViolation(error, 'admin_token_name_key')) throw error;
      throw ServiceError.of('conflict', 'name', 'a token with this name already exists; choose another name');
    }
  }

  /** Without an end, a token would be a way to stay when the OpenID provider no longer knows the user. */
  private async expiryOf(wanted: Date | null, by: Access): Promise<Date | null> {
    const latest = isSingleSignOn(by)
      ? new Date(Date.now() + SINGLE_SIGN_ON_DAYS * 86_400_000)
      : await this.expiryOfToken(by.tokenId);
    if (latest === null || (wanted !== null && wanted <= latest)) return wanted;
    if (wanted === null) return latest;
    const limit = isSingleSignOn(by)
      ? `at most ${SINGLE_SIGN_ON_DAYS} days from now, because you signed in by single sign-on`
      : `at most ${latest.toISOString()}, when your own token expires`;
    throw ServiceError.of('invalid', 'expires_at', `must be ${limit}`);
  }

  /** @returns null for a token that never expires, and for ADMIN_TOKEN */
  private async expiryOfToken(id: string | null): Promise<Date | null> {
    if (id === null) return null;
    const [row] = await this.dataSource.query<{ expires_at: Date | null }[]>(EXPIRY, [id]);
    // It was revoked meanwhile.
    return row === undefined ? new Date() : row.expires_at;
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list({ limit, cursor }: PageRequest): Promise<Page<TokenView>> {
    const rows = await this.dataSource.query<TokenRow[]>(LIST, [idOfCursor(cursor), limit + 1]);
    return pageOf(rows, limit, tokenView);
  }

  /** Removes a token; its sessions end with it. @throws ServiceError not_found */
  async revoke(id: string, by: Actor): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const before = await find(manager, id);
      const [removed] = await manager.query<[object[], number]>(REMOVE, [id]);
      // Another request was faster.
      if (removed.length === 0) throw notFound();
      await recordChange(manager, by, { action: 'revoked', type: 'token', before, after: null });
    });
  }
}

async function find(manager: EntityManager, id: string): Promise<TokenView> {
  const [row] = isUuid(id) ? await manager.query<TokenRow[]>(FIND, [id]) : [];
  if (row === undefined) throw notFound();
  return tokenView(row);
}

function notFound(): ServiceError {
  return ServiceError.of('not_found', 'id', 'no token has this id; list the tokens to find it');
}

/** Lists each field, so that a new column is not shown by accident. */
function tokenView(row: TokenRow): TokenView {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    role: row.role,
    teams: row.teams,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    last_used_at: row.last_used_at?.toISOString() ?? null,
  };
}
