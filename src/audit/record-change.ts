import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import type { Actor } from '../platform/actor.js';
import { logWhenCommitted } from './change-log.js';
import { ENTRIES_CHANNEL } from './entry-rows.js';

/** Types of objects whose changes are recorded. A module adds its own with `PosternModule.forFeature()`. */
export const SUBJECT_TYPES = new Set([
  'configuration',
  'device_request',
  'group',
  'installation_limits',
  'issued_token',
  'key',
  'limit',
  'policy',
  'person',
  'price',
  'provider',
  'regression',
  'route',
  'session',
  'sign_in',
  'sink',
  'team',
  'token',
  'trust',
  'webhook',
  'provider_job',
]);

/** Actions that are recorded. A module adds its own with `PosternModule.forFeature()`. */
export const ACTIONS = new Set([
  'applied',
  'changed',
  'created',
  'dismissed',
  'ended',
  'forgotten',
  'put_back',
  'removed',
  'reopened',
  'replayed',
  'repriced',
  'resealed',
  'reset',
  'revoked',
  'rotated',
  'signed_in',
  'signed_out',
]);

/** What people see of a subject: its view, which never holds a secret. */
export type Shown = object & { id: string | null; name: string };

/** A change for the audit log. */
export interface Change {
  /** One of ACTIONS. */
  action: string;
  /** One of SUBJECT_TYPES. */
  type: string;
  /** Null if the object is new. */
  before: Shown | null;
  /** Null if the object was removed. */
  after: Shown | null;
  /** The name of the subject, if its own is not unique. */
  name?: string;
  /** What the views do not show, such as that a secret changed. Never the secret itself. */
  more?: object;
}

/** Each replica reads what was recorded at once: it remembers ends, in case Postgres loses its last transactions. */
const INSERT = `
  WITH entry AS (
    INSERT INTO audit_log (id, actor, client_ip, action, subject_type, subject_id, subject_name, before, after)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9))
  SELECT pg_notify('${ENTRIES_CHANNEL}', '')`;

/** Fields that change by themselves or with every change, so they are not recorded. */
const NO_SETTINGS = new Set(['last_used_at', 'updated_at', 'version']);

/**
 * Records one change with the manager of the transaction that makes it, so that both are committed or neither. A change
 * records the fields that differ; a new or removed object records all of them.
 */
export async function recordChange(manager: EntityManager, by: Actor, change: Change): Promise<void> {
  const { action, type, before, after, more } = change;
  // Unlisted values could not be used as a filter.
  if (!ACTIONS.has(action))
    throw new Error(`${action} is no action of the audit log; add it with PosternModule.forFeature()`);
  if (!SUBJECT_TYPES.has(type))
    throw new Error(`${type} is no type of the audit log; add it with PosternModule.forFeature()`);
  const subject = (after ?? before)!;
  const name = change.name ?? subject.name;
  const [was, changed] = differing(before, after);
  const is = changed && { ...changed, ...more };
  await manager.query(INSERT, [
    uuidv7(),
    by.name,
    by.address,
    action,
    type,
    subject.id,
    name,
    was && JSON.stringify(was),
    is && JSON.stringify(is),
  ]);
  logWhenCommitted(manager, {
    actor: by.name,
    client_ip: by.address,
    action,
    subject_type: type,
    subject_id: subject.id,
    subject_name: name,
    before: was,
    after: is,
  });
}

function differing(before: Shown | null, after: Shown | null): [object | null, object | null] {
  const names = Object.keys(before ?? after ?? {}).filter((name) => !NO_SETTINGS.has(name));
  const kept =
    before === null || after === null
      ? names
      : names.filter(
          (name) => JSON.stringify(valueOf(before, name)) !== JSON.stringify(valueOf(after, name)),
        );
  return [pick(before, kept), pick(after, kept)];
}

function pick(view: Shown | null, names: readonly string[]): object | null {
  return view && Object.fromEntries(names.map((name) => [name, valueOf(view, name)]));
}

function valueOf(view: Shown, name: string): unknown {
  return (view as Record<string, unknown>)[name];
}
