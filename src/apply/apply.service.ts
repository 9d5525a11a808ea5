import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { forgetChanges, recordedChanges, type RecordedChange } from '../audit/change-log.js';
import { recordChange } from '../audit/record-change.js';
import { type ErrorDetail, ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { LOCK_CHANGES } from '../providers/provider-rows.js';
import type { Applied, Apply, ApplyDocument, NewSecret, PlannedChange } from './apply.schema.js';
import { type Kind, Kinds } from './kinds.js';

/**
 * Waits for running changes, and lets no other begin before the end of this one; reads go on. Every transaction that changes or
 * locks rows of several of these tables must lock them in this order: one that has locked a later one and waits for an earlier
 * one deadlocks with this. A foreign key locks the table that it refers to, even if it is null: a new secret locks `trust`.
 */
export const LOCK =
  'LOCK TABLE team, gateway_key, trust, team_group, provider, route, price, policy, sink IN EXCLUSIVE MODE';
/** The same for webhooks. Weaker, because an event refers to its webhooks: calls that cause one do not wait. */
const LOCK_WEBHOOKS = 'LOCK TABLE webhook IN SHARE ROW EXCLUSIVE MODE';

/** Changes the configuration to match a document, in one transaction. */
@Injectable()
export class ApplyService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly kinds: Kinds,
  ) {}

  /**
   * The plan is what the services have recorded in the transaction; a dry run rolls it back.
   *
   * @throws ServiceError invalid with every error of the document; conflict if there are new secrets that nobody asked for,
   *   or the plan is not the expected one
   */
  async apply(request: Apply, by: Actor): Promise<Applied> {
    if (request.prune) mustNotPruneAll(request.document);
    const runner = this.dataSource.createQueryRunner();
    try {
      await runner.startTransaction();
      const applied = await this.work(runner.manager, request, by);
      if (request.dry_run) {
        await runner.rollbackTransaction();
      } else {
        await runner.commitTransaction();
        await this.kinds.takeEffect();
      }
      return applied;
    } catch (error) {
      if (runner.isTransactionActive) await runner.rollbackTransaction();
      throw error;
    } finally {
      await runner.release();
    }
  }

  private async work(manager: EntityManager, request: Apply, by: Actor): Promise<Applied> {
    await manager.query(LOCK_CHANGES);
    await manager.query(LOCK);
    await manager.query(LOCK_WEBHOOKS);
    const secrets: (NewSecret & { field: string })[] = [];
    const named = new Map<Kind, Set<string>>();
    const items = this.kinds.of(request.document).flatMap((kind) => {
      const given: unknown = request.document[kind.member];
      if (given !== undefined) named.set(kind, new Set());
      const field = `document.${kind.member}`;
      if (!Array.isArray(given)) return given === undefined ? [] : [{ kind, item: given, field }];
      return given.map((item: unknown, i) => ({ kind, item, field: `${field}.${i}` }));
    });
    const put = async ({ kind, item, field }: (typeof items)[number], errors: ErrorDetail[]) => {
      const done = await attempt(manager, field, errors, () => kind.put(manager, item as never, by));
      if (done === null) return false;
      named.get(kind)!.add(done.id);
      if (done.secret !== undefined) secrets.push({ ...done.secret, field });
      return true;
    };
    const errors = await putAll(items, put);
    const kept = recordedChanges(manager).length;
    if (request.prune && errors.length === 0)
      for (const [kind, ids] of [...named].reverse())
        await attempt(manager, `document.${kind.member}`, errors, () => kind.prune(manager, ids, by));
    if (errors.length > 0) throw invalid(errors);

    const plan = recordedChanges(manager).map((change, i) => planned(change, i >= kept));
    const id = hash('md5', JSON.stringify(plan));
    if (!request.dry_run) {
      if (request.plan_id !== undefined && request.plan_id !== id) {
        throw new ServiceError('conflict', 'The plan has changed; review it again, then apply it.');
      }
      if (!request.return_secrets && secrets.length > 0) throw unasked(secrets);
      if (plan.length > 0) await record(manager, plan, request.prune, by);
    }
    const shown = request.dry_run ? [] : secrets.map(({ field: _, ...secret }) => secret);
    return { dry_run: request.dry_run, plan_id: id, plan, secrets: shown };
  }
}

/**
 * Puts all items. One may suit only what a later one becomes: a provider moves to another team once it is no longer the
 * default of the first. So those that are rejected are tried again, as long as others have been put.
 *
 * @returns the errors of those that were rejected last
 */
async function putAll<T>(
  items: readonly T[],
  put: (item: T, errors: ErrorDetail[]) => Promise<boolean>,
): Promise<ErrorDetail[]> {
  const errors: ErrorDetail[] = [];
  const rejected: T[] = [];
  for (const item of items) if (!(await put(item, errors))) rejected.push(item);
  return rejected.length === 0 || rejected.length === items.length ? errors : putAll(rejected, put);
}

/** Runs one change; if a service rejects it, undoes it and notes why. @returns null if it was rejected */
async function attempt<T>(
  manager: EntityManager,
  field: string,
  errors: ErrorDetail[],
  work: () => Promise<T>,
): Promise<T | null> {
  const { length } = recordedChanges(manager);
  await manager.query('SAVEPOINT change');
  try {
    const result = await work();
    await manager.query('RELEASE SAVEPOINT change');
    return result;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    await manager.query('ROLLBACK TO SAVEPOINT change');
    forgetChanges(manager, length);
    if (error.details.length === 0) errors.push({ field, message: error.message });
    for (const detail of error.details)
      errors.push({ field: `${field}.${detail.field}`, message: detail.message });
    return null;
  }
}

/** An empty list is more likely a mistake than the wish to end everything. */
function mustNotPruneAll(document: ApplyDocument): void {
  const empty = Object.entries(document).filter(([, items]) => Array.isArray(items) && items.length === 0);
  const message = 'is empty, and prune would end all of them; leave it out, or end them one by one';
  if (empty.length > 0) throw invalid(empty.map(([member]) => ({ field: `document.${member}`, message })));
}

function unasked(secrets: readonly { field: string; type: string }[]): ServiceError {
  const details = secrets.map(({ field, type }) => ({
    field,
    message: `this ${type} is new, and its secret is shown only once; give --secrets-out or return_secrets to get it`,
  }));
  return new ServiceError('conflict', messageOf(details), details);
}

function invalid(details: readonly ErrorDetail[]): ServiceError {
  return new ServiceError('invalid', messageOf(details), details);
}

function messageOf(details: readonly ErrorDetail[]): string {
  return details.map(({ field, message }) => `${field}: ${message}`).join('; ');
}

function planned(change: RecordedChange, isPruned: boolean): PlannedChange {
  const { action, subject_type: type, subject_name: name, before, after } = change;
  if (isPruned) return { action: 'delete', type, name, fields: {} };
  if (action === 'created') return { action: 'create', type, name, fields: {} };
  const was = (before ?? {}) as Record<string, unknown>;
  const fields = Object.entries(after ?? {}).map(([field, value]) => [
    field,
    { before: was[field] ?? null, after: value as unknown },
  ]);
  return { action: 'update', type, name, fields: Object.fromEntries(fields) as PlannedChange['fields'] };
}

/** One entry that names all changes; each change also has its own, at the same time. */
async function record(
  manager: EntityManager,
  plan: readonly PlannedChange[],
  prune: boolean,
  by: Actor,
): Promise<void> {
  const changes = plan.map(({ action, type, name }) => `${action} ${type} ${name}`);
  await recordChange(manager, by, {
    action: 'applied',
    type: 'configuration',
    before: null,
    after: { id: uuidv7(), name: 'configuration', prune, changes } as { id: string; name: string },
  });
}
