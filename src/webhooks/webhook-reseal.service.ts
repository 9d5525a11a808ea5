import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { recordChange } from '../audit/record-change.js';
import type { Actor } from '../platform/actor.js';
import { SecretBoxError } from '../platform/secret-box.js';
import { type Resealed, ResealService } from '../providers/reseal.service.js';
import { SELECT_WEBHOOKS, settingsOf, type WebhookRow, webhookView } from './webhook-view.js';
import { WebhookSecrets } from './webhook-secrets.service.js';
import { LOCK_CHANGES } from './webhooks.service.js';

const LIST = 'SELECT id FROM webhook ORDER BY id';
const LOCK = 'SELECT FROM webhook WHERE id = $1 FOR UPDATE';
const FIND = `${SELECT_WEBHOOKS} WHERE w.id = $1`;
/** No setting changes, so the version stays. */
const RESEAL = 'UPDATE webhook SET sealed = $2 WHERE id = $1';

/** Re-encrypts webhooks with the current master key, as part of `postern providers reseal`. */
@Injectable()
export class WebhookReseal {
  constructor(
    private readonly dataSource: DataSource,
    private readonly secrets: WebhookSecrets,
    reseal: ResealService,
  ) {
    reseal.others.push((done, by) => this.reseal(done, by));
  }

  private async reseal(done: Resealed, by: Actor): Promise<void> {
    for (const { id } of await this.dataSource.query<{ id: string }[]>(LIST)) {
      const outcome = await this.resealOne(id, by);
      if (outcome !== null) done[outcome].push(`webhook ${id}`);
    }
  }

  /** @returns null if the webhook was removed meanwhile */
  private resealOne(id: string, by: Actor): Promise<keyof Resealed | null> {
    return this.dataSource.transaction(async (manager) => {
      await manager.query(LOCK_CHANGES);
      await manager.query(LOCK, [id]);
      const [row] = await manager.query<WebhookRow[]>(FIND, [id]);
      if (row === undefined) return null;
      if (this.secrets.isCurrent(row.sealed)) return 'current';
      let target;
      try {
        target = this.secrets.open(id, row.sealed);
      } catch (error) {
        if (error instanceof SecretBoxError) return 'unreadable';
        throw error;
      }
      await manager.query(RESEAL, [id, this.secrets.seal(id, target)]);
      const view = settingsOf(webhookView(row, true));
      await recordChange(manager, by, { action: 'resealed', type: 'webhook', before: view, after: view });
      return 'resealed';
    });
  }
}
