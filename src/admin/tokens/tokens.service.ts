import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager, Repository } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { type Access, isSingleSignOn } from '../access/access.js';
import { AdminToken } from '../access/admin-token.entity.js';
import { digestToken, generateToken, TOKEN_SHOWN_LENGTH } from '../access/token-format.js';
import { audited, lockRow, type Subject } from '../../audit/audited.js';
import { recordChange } from '../../audit/record-change.js';
import { isUuid, type Page, pageOf, pageOptions, type PageRequest } from '../../database/page.js';
import { isUniqueViolation } from '../../database/sql-state.js';
import { ServiceError } from '../../errors/service-error.js';
import type { Actor } from '../../platform/actor.js';
import { TeamsService } from '../../teams/teams.service.js';
import type { IssuedTokenView, NewToken, TokenView } from './tokens.schema.js';

/** Longest lifetime of a token that a user of single sign-on creates, in days. */
const SINGLE_SIGN_ON_DAYS = 90;

/** Creates, lists and revokes tokens of the admin API. */
@Injectable()
export class TokensService {
  constructor(
    @InjectRepository(AdminToken) private readonly tokens: Repository<AdminToken>,
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
    const digest = Buffer.from(digestToken(token), 'hex');
    const prefix = token.slice(0, TOKEN_SHOWN_LENGTH);
    try {
      return await this.tokens.manager.transaction(async (manager) => {
        await manager.insert(AdminToken, { id, name, digest, prefix, role, teams: scope, expiresAt });
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
    const token = await this.tokens.findOneBy({ id });
    // It was revoked meanwhile.
    return token === null ? new Date() : token.expiresAt;
  }

  /** Newest first. @throws ServiceError invalid for a foreign cursor */
  async list(page: PageRequest): Promise<Page<TokenView>> {
    return pageOf(await this.tokens.find(pageOptions(page)), page.limit, tokenView);
  }

  /** Removes a token; its sessions end with it. @throws ServiceError not_found */
  async revoke(id: string, by: Actor): Promise<void> {
    const request = { id, action: 'revoked', by, removes: true };
    await audited(this.tokens.manager, TOKEN, request, async (manager) => {
      await manager.delete(AdminToken, id);
      return {};
    });
  }
}

const TOKEN: Subject<TokenView> = {
  type: 'token',
  lock: lockRow(AdminToken),
  find,
  shown: (token) => token,
};

async function find(manager: EntityManager, id: string): Promise<TokenView> {
  const token = isUuid(id) ? await manager.findOneBy(AdminToken, { id }) : null;
  if (token !== null) return tokenView(token);
  throw ServiceError.of('not_found', 'id', 'no token has this id; list the tokens to find it');
}

/** Lists each field, so that a new column is not shown by accident. */
function tokenView(token: AdminToken): TokenView {
  return {
    id: token.id,
    name: token.name,
    prefix: token.prefix,
    role: token.role,
    teams: token.namedTeams,
    created_at: token.createdAt.toISOString(),
    expires_at: token.expiresAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
  };
}
