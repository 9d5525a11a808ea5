import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ServiceError } from '../errors/service-error.js';
import { pick } from '../platform/pick.js';
import { digestKey, isWellFormedKey } from './key-secret.js';
import { FIND_KEY, KEY_STATUS_SQL, type KeyRow, keyView } from './key-view.js';
import type { LeakedKey } from './leaked-key.schema.js';
import { HAS_NOT_ENDED, SECRETS } from './live-secrets.js';

interface SecretRow extends Pick<
  LeakedKey,
  'status' | 'kind' | 'subject' | 'trust' | 'sign_in_id' | 'secret_expired'
> {
  key_id: string;
  expires_at: Date | null;
  works: boolean;
}

const FIND_SECRET = `
  SELECT s.key_id, ${KEY_STATUS_SQL} AS status, ${HAS_NOT_ENDED} AS works,
         COALESCE(s.expires_at <= now(), false) AS secret_expired, s.expires_at, s.kind, s.subject, tr.name AS trust, s.sign_in_id
  FROM ${SECRETS}
  WHERE s.digest = decode($1, 'hex')`;

/** Finds the key that a leaked secret or token belongs to. */
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
        'This has the format of a key, but no key of this gateway has this secret. Check that it is complete, or look in your other gateways. Tokens are deleted a day after they end, and at once with their trust.',
      );
    }
    const [row] = await manager.query<[KeyRow]>(FIND_KEY, [found.key_id]);
    return {
      ...keyView(row),
      ...pick(found, ['status', 'kind', 'subject', 'trust', 'sign_in_id', 'secret_expired']),
      secret_status: found.works ? 'active' : 'ended',
      secret_expires_at: found.expires_at?.toISOString() ?? null,
    };
  }
}
