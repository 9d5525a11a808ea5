import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { EntityManager } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { recordChange } from '../audit/record-change.js';
import { isUuid } from '../database/page.js';
import { type Expected, mustBeExpected } from '../database/revision.js';
import { inTransaction, type Transactions } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { shownUrl } from '../platform/provider-url.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { type SinkAccess, SinkSecrets } from './sink-secrets.service.js';
import { FIRST_ID } from './sink-rows.js';
import { checkSinkUrl, targetProblem } from './sink-url.js';
import { SELECT_SINKS, settingsOf, type SinkRow, sinkView } from './sink-view.js';
import type { NewSink, SinkChange, SinkView } from './sinks.schema.js';

/** Each sink has a connection to Postgres and reads every row. */
const MOST_SINKS = 10;

const LIST = `${SELECT_SINKS} ORDER BY name`;
const FIND = `${SELECT_SINKS} WHERE id = $1`;
const FIND_BY_NAME = `${SELECT_SINKS} WHERE name = $1`;
/** Separate statements, so that the next read sees everything committed before the lock. */
const LOCK_ALL = 'LOCK TABLE sink IN SHARE ROW EXCLUSIVE MODE';
const LOCK = 'SELECT FROM sink WHERE id = $1 FOR UPDATE';
const COUNT = 'SELECT count(*)::int AS count FROM sink';
const INSERT = `
  INSERT INTO sink (id, name, kind, shown_url, target, sealed, recorded_until, recorded_until_id)
  VALUES ($1, $2, $3, $4, $5, $6, $7, '${FIRST_ID}')`;
const UPDATE = `
  UPDATE sink SET name = $2, shown_url = $3, target = $4, sealed = $5, enabled = $6, version = version + 1, updated_at = now()
  WHERE id = $1`;
/** Also ends a batch that is being sent: its rows are sent again. */
const REPLAY = `
  UPDATE sink SET recorded_until = $2, recorded_until_id = '${FIRST_ID}', version = version + 1, updated_at = now(),
    batch_token = NULL, batch_until = NULL, batch_until_id = NULL, batch_ends = NULL, batch_at = NULL
  WHERE id = $1`;
const DELETE = 'DELETE FROM sink WHERE id = $1';

/** Creates, shows, changes and removes sinks. */
@Injectable()
export class SinksService {
  constructor(
    @InjectDataSource() private readonly dataSource: Transactions,
    private readonly secrets: SinkSecrets,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): SinksService {
    return new SinksService(inTransaction(manager), this.secrets);
  }

  /** @throws ServiceError conflict if the name is taken or there are as many sinks as there may be */
  create({ name, kind, url, secret, target, from }: NewSink, by: Actor): Promise<SinkView> {
    const id = uuidv7();
    const sealed = this.secrets.seal(id, { url, secret });
    return this.dataSource.transaction(async (manager) => {
      await manager.query(LOCK_ALL);
      const [{ count }] = await manager.query<[{ count: number }]>(COUNT);
      if (count >= MOST_SINKS)
        throw new ServiceError('conflict', `There can be ${MOST_SINKS} sinks; remove one first.`);
      await mustBeFree(manager, name);
      await manager.query(INSERT, [id, name, kind, shownUrl(url), target, sealed, from ?? new Date(0)]);
      const view = this.view(await find(manager, id));
      await recordChange(manager, by, {
        action: 'created',
        type: 'sink',
        before: null,
        after: settingsOf(view),
      });
      return view;
    });
  }

  /** By name. */
  async list(): Promise<SinkView[]> {
    return (await this.dataSource.query<SinkRow[]>(LIST)).map((row) => this.view(row));
  }

  /** @throws ServiceError not_found */
  async get(id: string): Promise<SinkView> {
    return this.view(await find(this.dataSource.manager, id));
  }

  /**
   * Changes a sink, which goes on where it is. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; invalid; conflict if it was changed since `expected`, or if it cannot be decrypted
   */
  update(id: string, change: SinkChange, by: Actor, expected: Expected = null): Promise<SinkView> {
    return this.dataSource.transaction(async (manager) => {
      const row = await findLocked(manager, id, expected);
      const present = this.open(row);
      const name = change.name ?? row.name;
      if (name !== row.name) await mustBeFree(manager, name);
      const target = change.target === undefined ? row.target : change.target;
      const problem = targetProblem(row.kind, target);
      if (problem !== null) throw ServiceError.of('invalid', 'target', problem);
      const checked = change.url === undefined ? { url: present.url } : checkSinkUrl(row.kind, change.url);
      if (checked.url === undefined) throw ServiceError.of('invalid', 'url', checked.problem);
      const access = {
        url: checked.url,
        secret: change.secret === undefined ? present.secret : change.secret,
      };
      if (
        present.secret !== null &&
        change.secret === undefined &&
        originOf(access.url) !== originOf(present.url)
      ) {
        throw ServiceError.of(
          'invalid',
          'secret',
          'must be sent again with a URL on another host, so that the stored one is never sent elsewhere',
        );
      }
      const enabled = change.enabled ?? row.enabled;
      const isSame = [
        ...[name === row.name, target === row.target, enabled === row.enabled],
        ...[access.url === present.url, access.secret === present.secret],
      ];
      if (isSame.every(Boolean)) return this.view(row);
      const sealed = this.secrets.seal(row.id, access);
      const values = [row.id, name, shownUrl(access.url), target, sealed, enabled];
      await manager.query(UPDATE, values);
      const after = this.view(await find(manager, row.id));
      await recordChange(manager, by, {
        ...{ action: 'changed', type: 'sink' },
        ...{ before: settingsOf(this.view(row)), after: settingsOf(after) },
        // What differs is hidden.
        more: {
          ...(access.url !== present.url && after.url === row.shown_url && { url: 'changed' }),
          ...(access.secret !== present.secret && { secret: 'changed' }),
        },
      });
      return after;
    });
  }

  /** Sends rows recorded at this time or later again. @throws ServiceError not_found; conflict if it was changed since `expected` */
  replay(id: string, from: Date, by: Actor, expected: Expected = null): Promise<SinkView> {
    return this.dataSource.transaction(async (manager) => {
      const row = await findLocked(manager, id, expected);
      if (from >= row.recorded_until) {
        throw ServiceError.of(
          'invalid',
          'from',
          `must be earlier than ${row.recorded_until.toISOString()}: later rows are still to be sent`,
        );
      }
      await manager.query(REPLAY, [row.id, from]);
      const after = this.view(await find(manager, row.id));
      const settings = settingsOf(after);
      await recordChange(manager, by, {
        ...{ action: 'replayed', type: 'sink', before: settings, after: settings },
        more: { from: from.toISOString() },
      });
      return after;
    });
  }

  /** @throws ServiceError not_found; conflict if it was changed since `expected` */
  remove(id: string, by: Actor, expected: Expected = null): Promise<void> {
    return this.dataSource.transaction(async (manager) => {
      const row = await findLocked(manager, id, expected);
      await manager.query(DELETE, [row.id]);
      const before = settingsOf(this.view(row));
      await recordChange(manager, by, { action: 'removed', type: 'sink', before, after: null });
    });
  }

  private view(row: SinkRow): SinkView {
    try {
      this.secrets.open(row.id, row.sealed);
    } catch (error) {
      // Without a master key (a command) the state cannot be determined.
      if (error instanceof SecretBoxError) return sinkView(row, false);
      if (!(error instanceof ServiceError)) throw error;
    }
    return sinkView(row, true);
  }

  private open({ id, sealed }: SinkRow): SinkAccess {
    try {
      return this.secrets.open(id, sealed);
    } catch (error) {
      if (!(error instanceof SecretBoxError)) throw error;
      throw ServiceError.of('conflict', 'secret_state', `cannot be decrypted: ${error.message}`);
    }
  }
}

/** Scheme, host and port of a URL in normal form. */
function originOf(url: string): string {
  return url.split('/', 3).join('/');
}

/** By its ID or its name. */
async function find(manager: EntityManager, id: string): Promise<SinkRow> {
  const [row] = await manager.query<SinkRow[]>(isUuid(id) ? FIND : FIND_BY_NAME, [id]);
  if (row !== undefined) return row;
  throw ServiceError.of('not_found', 'id', 'no sink has this name or id; list the sinks to find it');
}

async function findLocked(manager: EntityManager, id: string, expected: Expected): Promise<SinkRow> {
  const { id: found } = await find(manager, id);
  await manager.query(LOCK, [found]);
  const row = await find(manager, found);
  mustBeExpected('sink', row, expected);
  return row;
}

async function mustBeFree(manager: EntityManager, name: string): Promise<void> {
  const [taken] = await manager.query<SinkRow[]>(FIND_BY_NAME, [name]);
  if (taken !== undefined)
    throw ServiceError.of('conflict', 'name', 'another sink has this name; choose another one');
}
