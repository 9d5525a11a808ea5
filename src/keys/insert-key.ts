import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import type { Access } from '../admin/access/access.js';
import type { Actor } from '../platform/actor.js';
import { recordChange } from '../audit/record-change.js';
import type { LimitMembers } from '../limit-rules/limit-rules.schema.js';
import { withoutLimits } from '../limit-rules/stored-rules.js';
import { withAnnotationColumns } from '../teams/annotations.js';
import { GatewayKeySecret } from './gateway-key-secret.entity.js';
import { GatewayKey } from './gateway-key.entity.js';
import { digestKey, generateKey, shownPrefix } from './key-secret.js';
import { FIND_KEY, fullName, type KeyRow, keyView } from './key-view.js';
import type { KeyView, NewKey } from './keys.schema.js';

/** What a key is created with, apart from its team and its limits; the defaults are those of the columns. */
export type KeyGrant = Partial<Omit<NewKey, 'team' | 'name' | 'expires_at' | keyof LimitMembers>> & {
  name: string;
  /** null if the key never expires. */
  expiresAt: Date | null;
  /** Until when sign-ins of its owner move `expiresAt`; absent if they do not. */
  latestExpiry?: Date;
  /** Member of the team whose own it is; absent for other keys. */
  member?: Access;
  /** ID of the person whose tokens it is for; absent for other keys. */
  personId?: string;
  /** False: only tokens of this key are ever sent, and it has no static secret. */
  secret?: boolean;
};

/** A key with its secret, which is not stored and cannot be read later. */
export interface IssuedKey {
  key: KeyView;
  /** null if it was created without one. */
  secret: string | null;
}

export interface RotatedKey extends IssuedKey {
  secret: string;
  /** First characters of older secrets whose grace the rotation ended. */
  ended: string[];
}

/** As the foreign key does, but before the key, as `apply` locks the tables. */
const LOCK_TEAM = 'SELECT FROM team WHERE id = $1 FOR KEY SHARE';

/**
 * Inserts a key with its first secret and an audit entry. `manager` must belong to a transaction: otherwise an error could
 * leave a key without a secret.
 *
 * @param saveLimits stores the limits of the new key; undefined: it has none
 */
export async function insertKey(
  manager: EntityManager,
  teamId: string,
  grant: KeyGrant,
  by: Actor,
  saveLimits?: (id: string) => Promise<void>,
): Promise<IssuedKey> {
  const id = uuidv7();
  const { member, personId, secret: withSecret = true, ...settings } = grant;
  const theirs = personId !== undefined && { personId, origin: 'sign_in' as const };
  const mine = member && { owner: member.actor.name, ownerId: member.userId };
  await manager.query(LOCK_TEAM, [teamId]);
  await manager.insert(GatewayKey, { id, teamId, ...columnsOf(settings), ...mine, ...theirs });
  const secret = withSecret ? await insertSecret(manager, id) : null;
  await saveLimits?.(id);
  const [row] = await manager.query<[KeyRow]>(FIND_KEY, [id]);
  const key = keyView(row);
  await recordChange(manager, by, {
    action: 'created',
    type: 'key',
    name: fullName(key),
    before: null,
    after: key,
  });
  return { key, secret };
}

/** The columns of these settings. TypeORM leaves out what is undefined. */
export function columnsOf(
  settings: Omit<Partial<KeyGrant>, 'member' | 'personId' | 'secret'> & LimitMembers,
): Partial<GatewayKey> {
  const {
    stream_usage: streamUsage,
    on_disconnect: onDisconnect,
    ...others
  } = withAnnotationColumns(withoutLimits(settings));
  return { streamUsage, onDisconnect, ...others };
}

/** Adds a secret to a key. @returns the secret, which is not stored */
export async function insertSecret(manager: EntityManager, keyId: string): Promise<string> {
  const secret = generateKey();
  const digest = Buffer.from(digestKey(secret), 'hex');
  await manager.insert(GatewayKeySecret, { id: uuidv7(), keyId, digest, prefix: shownPrefix(secret) });
  return secret;
}
