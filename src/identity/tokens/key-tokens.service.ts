import { Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { Access } from '../../admin/access/access.js';
import { idOfCursor, type Page, pageOf, type PageRequest } from '../../database/page.js';
import { IS_ENABLED, SECRETS } from '../../keys/live-secrets.js';
import { KeysService } from '../../keys/keys.service.js';
import type { IssuingTrust, TokenView } from './key-tokens.schema.js';

const LIST = `
  SELECT s.id, s.kind, s.subject, tr.name AS trust, s.created_at, LEAST(k.expires_at, s.expires_at) AS expires_at, s.last_used_at
  FROM ${SECRETS}
  WHERE s.key_id = $1 AND s.kind <> 'key' AND ${IS_ENABLED}
    AND ($2::text IS NULL OR 'sso:' || p.issuer || '#' || p.subject = $2)
    AND ($3::uuid IS NULL OR s.id < $3)
  ORDER BY s.id DESC LIMIT $4`;

const LIST_TRUSTS = 'SELECT name, last_used_at FROM trust WHERE key_id = $1 ORDER BY name LIMIT 100';

interface TokenRow extends Pick<TokenView, 'id' | 'kind' | 'subject' | 'trust'> {
  created_at: Date;
  expires_at: Date;
  last_used_at: Date | null;
}

/** Lists the tokens of a key that work now. */
@Injectable()
export class KeyTokens {
  constructor(
    private readonly manager: EntityManager,
    private readonly keys: KeysService,
  ) {}

  /**
   * Newest first. Who sees only some teams sees the tokens of their own sign-ins, and which trusts issue others.
   *
   * @throws ServiceError not_found for a key out of sight; invalid for a foreign cursor
   */
  async list(
    keyId: string,
    { limit, cursor }: PageRequest,
    { scope, userId }: Access,
  ): Promise<Page<TokenView> & { trusts: IssuingTrust[] }> {
    await this.keys.get(keyId, scope);
    const values = [keyId, scope === null ? null : userId, idOfCursor(cursor), limit + 1];
    const rows = await this.manager.query<TokenRow[]>(LIST, values);
    const trusts = await this.manager.query<{ name: string; last_used_at: Date | null }[]>(LIST_TRUSTS, [
      keyId,
    ]);
    return {
      trusts: trusts.map(({ name, last_used_at }) => ({ name, last_used_at: iso(last_used_at) })),
      ...pageOf(rows, limit, ({ created_at, expires_at, last_used_at, ...token }) => ({
        ...token,
        created_at: created_at.toISOString(),
        expires_at: expires_at.toISOString(),
        last_used_at: iso(last_used_at),
      })),
    };
  }
}

function iso(at: Date | null): string | null {
  return at?.toISOString() ?? null;
}
