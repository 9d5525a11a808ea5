import type { EntityManager, EntityTarget, FindOptionsWhere } from 'typeorm';
import { isUuid } from '../database/page.js';
import { mustBeExpected } from '../database/revision.js';
import { transacted } from '../database/transactions.js';
import type { Actor } from '../platform/actor.js';
import { recordChange, type Shown } from './record-change.js';

/** A kind of object that people change: how it is locked, found and shown in the audit log. */
export interface Subject<T> {
  /** One of SUBJECT_TYPES. */
  type: string;
  /**
   * Waits for other changes of the object. A statement of its own, so that `find` reads all that was committed before.
   *
   * @param id what the request calls it
   * @returns what `find` finds it by, now and after the change
   * @throws ServiceError not_found
   */
  lock: (manager: EntityManager, id: string) => Promise<string>;
  /** @throws ServiceError not_found */
  find: (manager: EntityManager, id: string) => Promise<T>;
  /** What the audit log records of it; never a secret. */
  shown: (object: T) => Shown;
  /** Its name in the audit log, if that of `shown` is not unique. */
  nameOf?: (object: T) => string;
}

/** A change of one object, by whom, and of which state. */
export interface AuditedChange {
  id: string;
  /** One of ACTIONS. */
  action: string;
  by: Actor;
  /** If-Match; absent or null: any state. */
  expected?: readonly string[] | null;
  /** True if the work deletes the row. */
  removes?: boolean;
}

/**
 * Changes one object and records it in the audit log: locks the object, finds it, compares it with If-Match, does the work,
 * finds it again and records what differs. All of it is one transaction, that of `manager` if it has one.
 *
 *     return audited(this.teams.manager, TEAM, { id, action: 'changed', by, expected }, async (manager, team) => {
 *       if (differing(team, change).length === 0) return null;
 *       await manager.update(Team, team.id, change);
 *       return {};
 *     });
 *
 * @param work gets the locked object; returns null if there is nothing to do, else what the views do not show, for the audit
 *   entry ({@link recordChange}, `more`)
 * @returns the object after the change; as it was if it was removed or there was nothing to do
 * @throws ServiceError not_found; conflict if it was changed since `expected`
 */
export function audited<T extends { id: string | null; version?: number | null }>(
  manager: EntityManager,
  { type, lock, find, shown, nameOf }: Subject<T>,
  { id, action, by, expected = null, removes = false }: AuditedChange,
  work: (manager: EntityManager, before: T) => Promise<object | null>,
): Promise<T> {
  return transacted(manager, async (manager) => {
    const found = await lock(manager, id);
    const before = await find(manager, found);
    mustBeExpected(type, before, expected);
    const was = shown(before);
    const more = await work(manager, before);
    if (more === null) return before;
    const after = removes ? null : await find(manager, found);
    const name = nameOf?.(after ?? before);
    await recordChange(manager, by, { action, type, name, before: was, after: after && shown(after), more });
    return after ?? before;
  });
}

/** `lock` of a subject that is known by its ID. Without such a row it locks nothing: `find` says that there is none. */
export function lockRow<T extends { id: string }>(entity: EntityTarget<T>) {
  return async (manager: EntityManager, id: string): Promise<string> => {
    const where = { id } as FindOptionsWhere<T>;
    if (isUuid(id)) await manager.findOne(entity, { where, lock: { mode: 'pessimistic_write' } });
    return id;
  };
}

/** Names of the members of a change that ask for another value. */
export function differing<T extends object>(present: Record<keyof T, unknown>, change: T): (keyof T)[] {
  return (Object.keys(change) as (keyof T)[]).filter(
    (name) => change[name] !== undefined && JSON.stringify(change[name]) !== JSON.stringify(present[name]),
  );
}
