import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { recordChange } from '../audit/record-change.js';
import type { Actor } from '../platform/actor.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { type Resealed, ResealService } from '../providers/reseal.service.js';
import { SinkSecrets } from './sink-secrets.service.js';
import { SELECT_SINKS, settingsOf, type SinkRow, sinkView } from './sink-view.js';

const LIST = 'SELECT id, name FROM sink ORDER BY name';
const LOCK = 'SELECT FROM sink WHERE id = $1 FOR UPDATE';
const FIND = `${SELECT_SINKS} WHERE id = $1`;
/** No setting changes, so the version stays. */
const RESEAL = 'UPDATE sink SET sealed = $2 WHERE id = $1';

/** Re-encrypts sinks with the current master key, as part of `postern providers reseal`. */
@Injectable()
export class SinkReseal {
  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: SinkSecrets,
    reseal: ResealService,
  ) {
    reseal.others.push((done, by) => this.reseal(done, by));
  }

  private async reseal(done: Resealed, by: Actor): Promise<void> {
    for (const { id, name } of await this.dataSource.query<{ id: string; name: string }[]>(LIST)) {
      const outcome = await this.resealOne(id, by);
      if (outcome !== null) done[outcome].push(`sink ${name}`);
    }
  }

  /** @returns null if the sink was removed meanwhile */
  private resealOne(id: string, by: Actor): Promise<keyof Resealed | null> {
    return this.dataSource.transaction(async (manager) => {
      await manager.query(LOCK, [id]);
      const [row] = await manager.query<SinkRow[]>(FIND, [id]);
      if (row === undefined) return null;
      if (this.secrets.isCurrent(row.sealed)) return 'current';
      let access;
      try {
        access = this.secrets.open(id, row.sealed);
      } catch (error) {
        if (error instanceof SecretBoxError) return 'unreadable';
        throw error;
      }
      await manager.query(RESEAL, [id, this.secrets.seal(id, access)]);
      const view = settingsOf(sinkView(row, true));
      await recordChange(manager, by, { action: 'resealed', type: 'sink', before: view, after: view });
      return 'resealed';
    });
  }
}
