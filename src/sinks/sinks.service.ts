import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager, FindOneOptions, Repository } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { audited, type Subject } from '../audit/audited.js';
import { recordChange } from '../audit/record-change.js';
import { isUuid } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { shownUrl } from '../platform/provider-url.js';
import { FIRST_ID } from '../request-log/log-cursor.js';
import { SinkSecrets } from './sink-secrets.service.js';
import { checkSinkUrl, targetProblem } from './sink-url.js';
import { settingsOf, sinkView } from './sink-view.js';
import { Sink } from './sink.entity.js';
import type { NewSink, SinkChange, SinkView } from './sinks.schema.js';

/** Each sink has a connection to Postgres and reads every row. */
const MAX_SINKS = 10;

/** A separate statement, so that the next read sees everything committed before the lock. */
const LOCK_ALL = 'LOCK TABLE sink IN SHARE ROW EXCLUSIVE MODE';
/** Also ends a batch that is being sent: its rows are sent again. */
const NO_BATCH = { batchToken: null, batchUntil: null, batchUntilId: null, batchEnds: null, batchAt: null };

const SINK: Subject<Sink> = {
  type: 'sink',
  lock: async (manager, id) => (await find(manager, id, { mode: 'pessimistic_write' })).id,
  find,
  shown: settingsOf,
};

/** Creates, shows, changes and removes sinks. */
@Injectable()
export class SinksService {
  constructor(
    @InjectRepository(Sink) private readonly sinks: Repository<Sink>,
    private readonly secrets: SinkSecrets,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): SinksService {
    return new SinksService(manager.getRepository(Sink), this.secrets);
  }

  /** @throws ServiceError conflict if the name is taken or there are as many sinks as there may be */
  create({ name, kind, url, secret, target, from }: NewSink, by: Actor): Promise<SinkView> {
    const id = uuidv7();
    const sealed = this.secrets.seal(id, { url, secret });
    return transacted(this.sinks.manager, async (manager) => {
      await manager.query(LOCK_ALL);
      if ((await manager.count(Sink)) >= MAX_SINKS)
        throw new ServiceError('conflict', `There can be ${MAX_SINKS} sinks; remove one first.`);
      await mustBeFree(manager, name);
      const cursor = { recordedUntil: from ?? new Date(0), recordedUntilId: FIRST_ID };
      await manager.insert(Sink, { id, name, kind, shownUrl: shownUrl(url), target, sealed, ...cursor });
      const sink = await find(manager, id);
      await recordChange(manager, by, {
        action: 'created',
        type: 'sink',
        before: null,
        after: settingsOf(sink),
      });
      return this.view(sink);
    });
  }

  /** By name. */
  async list(): Promise<SinkView[]> {
    return (await this.sinks.find({ order: { name: 'ASC' } })).map((row) => this.view(row));
  }

  /** @throws ServiceError not_found */
  async get(id: string): Promise<SinkView> {
    return this.view(await find(this.sinks.manager, id));
  }

  /**
   * Changes a sink, which goes on where it is. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; invalid; conflict if it was changed since `expected`, or if it cannot be decrypted
   */
  async update(id: string, change: SinkChange, by: Actor, expected: Expected = null): Promise<SinkView> {
    const changed = { id, action: 'changed', by, expected };
    const sink = await audited(this.sinks.manager, SINK, changed, async (manager, row) => {
      const present = this.secrets.mustOpen(row.id, row.sealed);
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
      const isSame =
        name === row.name &&
        target === row.target &&
        enabled === row.enabled &&
        access.url === present.url &&
        access.secret === present.secret;
      if (isSame) return null;
      const sealed = this.secrets.seal(row.id, access);
      const values = { name, shownUrl: shownUrl(access.url), target, sealed, enabled };
      await manager.update(Sink, row.id, values);
      // What differs is hidden.
      return {
        ...(access.url !== present.url && values.shownUrl === row.shownUrl && { url: 'changed' }),
        ...(access.secret !== present.secret && { secret: 'changed' }),
      };
    });
    return this.view(sink);
  }

  /** Sends rows recorded at this time or later again. @throws ServiceError not_found; conflict if it was changed since `expected` */
  async replay(id: string, from: Date, by: Actor, expected: Expected = null): Promise<SinkView> {
    const replayed = { id, action: 'replayed', by, expected };
    const sink = await audited(this.sinks.manager, SINK, replayed, async (manager, row) => {
      if (from >= row.recordedUntil) {
        throw ServiceError.of(
          'invalid',
          'from',
          row.recordedUntil.getTime() === 0
            ? 'has no effect: no row was sent yet, and the sink will get all of them'
            : `must be earlier than ${row.recordedUntil.toISOString()}: later rows are still to be sent`,
        );
      }
      const cursor = { recordedUntil: from, recordedUntilId: FIRST_ID };
      await manager.update(Sink, row.id, { ...cursor, ...NO_BATCH });
      return { from: from.toISOString() };
    });
    return this.view(sink);
  }

  /** @throws ServiceError not_found; conflict if it was changed since `expected` */
  async remove(id: string, by: Actor, expected: Expected = null): Promise<void> {
    const removed = { id, action: 'removed', by, expected, removes: true };
    await audited(this.sinks.manager, SINK, removed, async (manager, row) => {
      await manager.delete(Sink, row.id);
      return {};
    });
  }

  private view(row: Sink): SinkView {
    return sinkView(row, this.secrets.isReadable(row.id, row.sealed));
  }
}

/** Scheme, host and port of a URL in normal form. */
function originOf(url: string): string {
  return url.split('/', 3).join('/');
}

/** By its ID or its name. */
async function find(manager: EntityManager, id: string, lock?: FindOneOptions['lock']): Promise<Sink> {
  const sink = await manager.findOne(Sink, { where: isUuid(id) ? { id } : { name: id }, lock });
  if (sink !== null) return sink;
  throw ServiceError.of('not_found', 'id', 'no sink has this name or id; list the sinks to find it');
}

async function mustBeFree(manager: EntityManager, name: string): Promise<void> {
  if (await manager.existsBy(Sink, { name }))
    throw ServiceError.of('conflict', 'name', 'another sink has this name; choose another one');
}
