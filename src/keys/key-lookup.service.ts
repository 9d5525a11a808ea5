import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { describeFault } from '../database/database-fault.js';
import { Refusal } from '../refusal.js';
import type { Grant } from './caller.js';
import type { EndpointRule, IdempotencyMode } from './gateway-key.entity.js';
import { digestKey, isWellFormedKey } from './key-secret.js';

const FIND_GRANT = `
  SELECT k.id AS key_id, k.team_id, k.providers, k.endpoints, k.idempotency,
         LEAST(k.expires_at, s.expires_at) AS expires_at,
         k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled AS enabled
  FROM gateway_key_secret s
  JOIN gateway_key k ON k.id = s.key_id
  JOIN team t ON t.id = k.team_id
  WHERE s.digest = $1`;

interface GrantRow {
  key_id: string;
  team_id: string;
  providers: string[] | null;
  endpoints: EndpointRule;
  idempotency: IdempotencyMode;
  expires_at: Date | null;
  enabled: boolean;
}

/** Answers the one question of the hot path: which grant, if any, does this key open right now? */
@Injectable()
export class KeyLookupService {
  private readonly logger = new Logger('Keys');

  constructor(private readonly dataSource: DataSource) {}

  /**
   * @returns the grant when the key is known, enabled and not past its end; else null
   * @throws Refusal database_unavailable when Postgres cannot say: a valid key must never be called invalid
   */
  async find(key: string): Promise<Grant | null> {
    if (!isWellFormedKey(key)) return null;
    const grant = await this.load(digestKey(key));
    return grant !== null && grant.enabled && grant.expiresAt > Date.now() ? grant : null;
  }

  private async load(digest: Buffer): Promise<Grant | null> {
    let rows: GrantRow[];
    try {
      rows = await this.dataSource.query<GrantRow[]>(FIND_GRANT, [digest]);
    } catch (error) {
      this.logger.error(`A key could not be looked up: ${describeFault(error)}`);
      throw new Refusal('database_unavailable', { cause: error });
    }
    const row = rows[0];
    if (row === undefined) return null;
    return {
      keyId: row.key_id,
      teamId: row.team_id,
      expiresAt: row.expires_at?.getTime() ?? Infinity,
      enabled: row.enabled,
      providers: row.providers,
      endpoints: row.endpoints,
      idempotency: row.idempotency,
    };
  }
}
