import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager, Repository } from 'typeorm';
import { v7 as uuidv7 } from 'uuid';
import { audited, type Subject } from '../audit/audited.js';
import { recordChange } from '../audit/record-change.js';
import { isUuid } from '../database/page.js';
import type { Expected } from '../database/revision.js';
import { transacted } from '../database/transactions.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { shownUrl } from '../platform/provider-url.js';
import { Webhook, type WebhookFormat } from './webhook.entity.js';
import { messageOf, TEST_TYPE } from './webhook-message.js';
import { newSecret, WebhookSecrets } from './webhook-secrets.service.js';
import { WebhookSender } from './webhook-sender.service.js';
import { SELECT_WEBHOOKS, settingsOf, testResult, type WebhookRow, webhookView } from './webhook-view.js';
import type {
  CreatedWebhook,
  NewWebhook,
  WebhookChange,
  WebhookTestResult,
  WebhookView,
} from './webhooks.schema.js';

/** Each event is stored once for each webhook, in the transaction that caused it. */
const MAX_WEBHOOKS = 20;

const LIST = `${SELECT_WEBHOOKS} ORDER BY w.id DESC`;
const FIND = `${SELECT_WEBHOOKS} WHERE w.id = $1`;
/** Before the row, in the order of `postern apply`, which locks the table and then rows. */
const LOCK_CHANGES = 'LOCK TABLE webhook IN ROW EXCLUSIVE MODE';

/** For changes of webhooks. */
export const WEBHOOK: Subject<WebhookRow> = {
  type: 'webhook',
  lock: async (manager, id) => {
    await manager.query(LOCK_CHANGES);
    if (isUuid(id)) await manager.findOne(Webhook, { where: { id }, lock: { mode: 'pessimistic_write' } });
    return id;
  },
  find,
  shown: settingsOf,
};

/** Creates, shows, changes, tests and removes webhooks. */
@Injectable()
export class WebhooksService {
  constructor(
    @InjectRepository(Webhook) private readonly webhooks: Repository<Webhook>,
    private readonly secrets: WebhookSecrets,
    private readonly sender: WebhookSender,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): WebhooksService {
    return new WebhooksService(manager.getRepository(Webhook), this.secrets, this.sender);
  }

  /**
   * The result contains the secret, which is not shown again.
   *
   * @throws ServiceError conflict if there are as many webhooks as there may be
   */
  create({ url, events, format }: NewWebhook, by: Actor): Promise<CreatedWebhook> {
    const id = uuidv7();
    const secret = format === 'slack' ? null : newSecret();
    const sealed = this.secrets.seal(id, { url, secret });
    return transacted(this.webhooks.manager, async (manager) => {
      if ((await manager.count(Webhook)) >= MAX_WEBHOOKS)
        throw new ServiceError('conflict', `There can be ${MAX_WEBHOOKS} webhooks; remove one first.`);
      await manager.insert(Webhook, { id, shownUrl: shownUrl(url), events, format, sealed });
      const row = await find(manager, id);
      await recordChange(manager, by, {
        action: 'created',
        type: 'webhook',
        before: null,
        after: settingsOf(row),
      });
      return { ...this.view(row), secret };
    });
  }

  /** Newest first. */
  async list(): Promise<WebhookView[]> {
    const rows = await this.webhooks.query<WebhookRow[]>(LIST);
    return rows.map((row) => this.view(row));
  }

  /** The ID of a webhook with this URL, hidden parts included; null if there is none. Unreadable ones are left out. */
  async idOf(url: string, format: WebhookFormat): Promise<string | null> {
    const webhooks = await this.webhooks.find({ where: { format }, order: { id: 'DESC' } });
    return webhooks.find(({ id, sealed }) => this.secrets.tryOpen(id, sealed)?.url === url)?.id ?? null;
  }

  /** @throws ServiceError not_found */
  async get(id: string): Promise<WebhookView> {
    return this.view(await find(this.webhooks.manager, id));
  }

  /**
   * Changes a webhook. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; conflict if it was changed since `expected`, or if it cannot be decrypted
   */
  async update(
    id: string,
    change: WebhookChange,
    by: Actor,
    expected: Expected = null,
  ): Promise<WebhookView> {
    const changed = { id, action: 'changed', by, expected };
    const webhook = await audited(this.webhooks.manager, WEBHOOK, changed, async (manager, row) => {
      const present = this.secrets.mustOpen(row.id, row.sealed);
      const { url = present.url, events = row.events } = change;
      const isMoved = url !== present.url;
      if (!isMoved && JSON.stringify(events) === JSON.stringify(row.events)) return null;
      const sealed = this.secrets.seal(row.id, { ...present, url });
      await manager.update(Webhook, row.id, { shownUrl: shownUrl(url), events, sealed });
      // The part that differs may be hidden.
      return isMoved ? { url_changed: true } : {};
    });
    return this.view(webhook);
  }

  /** @throws ServiceError not_found; conflict if it was changed since `expected` */
  async remove(id: string, by: Actor, expected: Expected = null): Promise<void> {
    const removed = { id, action: 'removed', by, expected, removes: true };
    await audited(this.webhooks.manager, WEBHOOK, removed, async (manager, row) => {
      await manager.delete(Webhook, row.id);
      return {};
    });
  }

  /** Sends an event of its own type, once. @throws ServiceError not_found, conflict if it cannot be decrypted */
  async test(id: string): Promise<WebhookTestResult> {
    const row = await find(this.webhooks.manager, id);
    const { url, secret } = this.secrets.mustOpen(row.id, row.sealed);
    const event = {
      id: randomUUID(),
      type: TEST_TYPE,
      created_at: new Date(),
      data: { webhook_id: id },
    } as const;
    const startedAt = performance.now();
    const attempt = await this.sender.send(url, messageOf(event, row.format, secret));
    return testResult(attempt, performance.now() - startedAt);
  }

  private view(row: WebhookRow): WebhookView {
    return webhookView(row, this.secrets.isReadable(row.id, row.sealed));
  }
}

async function find(manager: EntityManager, id: string): Promise<WebhookRow> {
  const [row] = isUuid(id) ? await manager.query<WebhookRow[]>(FIND, [id]) : [];
  if (row !== undefined) return row;
  throw ServiceError.of('not_found', 'id', 'no webhook has this id; list the webhooks to find it');
}
