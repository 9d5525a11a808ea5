import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';
import { digestKey, isWellFormedKey } from './key-secret.js';
import { FIND_KEY, KEY_STATUS_SQL, type KeyRow, keyView } from './key-view.js';
import type { KeyStatus } from './keys.schema.js';
import type { LeakedKey } from './leaked-key.schema.js';

interface SecretRow {
  key_id: string;
  expires_at: Date | null;
  ended: boolean;
}

const FIND_SECRET = `
  SELECT key_id, expires_at, COALESCE(expires_at <= now(), false) AS ended
  FROM gateway_key_secret WHERE digest = decode($1, 'hex')`;

const FIND_STATUS = `
  SELECT ${KEY_STATUS_SQL} AS status FROM gateway_key k JOIN team t ON t.id = k.team_id WHERE k.id = $1`;

/** Finds the key that a leaked secret belongs to. */
@Injectable()
export class LeakedKeyService {
  constructor(private readonly dataSource: DataSource) {}

  /** @throws ServiceError invalid if the text is not a gateway key, not_found if it is not a key of this gateway */
  async find(secret: string): Promise<LeakedKey> {
    if (!isWellFormedKey(secret)) {
      throw new ServiceError(
        'invalid',
        'This is not a gateway key. A key is ptn_ and 38 letters or digits; send only the key.',
      );
    }
    const { manager } = this.dataSource;
    const [found] = await manager.query<SecretRow[]>(FIND_SECRET, [digestKey(secret)]);
    if (found === undefined) {
      throw new ServiceError(
        'not_found',
        'This has the format of a key, but no key of this gateway has this secret. Check that it is complete, or look in your other gateways.',
      );
    }
    const [row] = await manager.query<[KeyRow]>(FIND_KEY, [found.key_id]);
    const [{ status }] = await manager.query<[{ status: KeyStatus }]>(FIND_STATUS, [found.key_id]);
    return {
      ...keyView(row),
      status,
      secret_status: found.ended ? 'ended' : 'active',
      secret_expires_at: found.expires_at?.toISOString() ?? null,
    };
  }
}
