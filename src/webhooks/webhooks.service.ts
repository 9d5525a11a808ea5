import { randomUUID } from 'node:crypto';
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
import type { WebhookFormat } from './webhook.entity.js';
import { messageOf, TEST_TYPE } from './webhook-message.js';
import { newSecret, WebhookSecrets, type WebhookTarget } from './webhook-secrets.service.js';
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
const MOST_WEBHOOKS = 20;

const LIST = `${SELECT_WEBHOOKS} ORDER BY w.id DESC`;
const FIND = `${SELECT_WEBHOOKS} WHERE w.id = $1`;
/** Before the row, in the order of `postern apply`, which locks the table and then rows. */
export const LOCK_CHANGES = 'LOCK TABLE webhook IN ROW EXCLUSIVE MODE';
/** A separate statement, so that the next read sees everything committed before the lock. */
const LOCK = 'SELECT FROM webhook WHERE id = $1 FOR UPDATE';
const INSERT = `
  INSERT INTO webhook (id, shown_url, events, format, sealed)
  SELECT $1, $2, $3, $4, $5 WHERE (SELECT count(*) FROM webhook) < ${MOST_WEBHOOKS}
  RETURNING id`;
const UPDATE = `
  UPDATE webhook SET shown_url = $2, events = $3, sealed = $4, version = version + 1, updated_at = now() WHERE id = $1`;
const DELETE = 'DELETE FROM webhook WHERE id = $1';

/** Creates, shows, changes, tests and removes webhooks. */
@Injectable()
export class WebhooksService {
  constructor(
    @InjectDataSource() private readonly dataSource: Transactions,
    private readonly secrets: WebhookSecrets,
    private readonly sender: WebhookSender,
  ) {}

  /** The same service, whose work is part of the transaction of `manager`. */
  in(manager: EntityManager): WebhooksService {
    return new WebhooksService(inTransaction(manager), this.secrets, this.sender);
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
    return this.dataSource.transaction(async (manager) => {
      const values = [id, shownUrl(url), events, format, sealed];
      const inserted = await manager.query<object[]>(INSERT, values);
      if (inserted.length === 0)
        throw new ServiceError('conflict', `There can be ${MOST_WEBHOOKS} webhooks; remove one first.`);
      const view = this.view(await find(manager, id));
      await recordChange(manager, by, {
        action: 'created',
        type: 'webhook',
        before: null,
        after: settingsOf(view),
      });
      return { ...view, secret };
    });
  }

  /** Newest first. */
  async list(): Promise<WebhookView[]> {
    const rows = await this.dataSource.query<WebhookRow[]>(LIST);
    return rows.map((row) => this.view(row));
  }

  /** The ID of a webhook with this URL, hidden parts included; null if there is none. Unreadable ones are left out. */
  async idOf(url: string, format: WebhookFormat): Promise<string | null> {
    const rows = await this.dataSource.query<WebhookRow[]>(LIST);
    const found = rows.find((row) => {
      if (row.format !== format || !this.isReadable(row)) return false;
      return this.secrets.open(row.id, row.sealed).url === url;
    });
    return found?.id ?? null;
  }

  /** @throws ServiceError not_found */
  async get(id: string): Promise<WebhookView> {
    return this.view(await find(this.dataSource.manager, id));
  }

  /**
   * Changes a webhook. If nothing differs, the version stays and nothing is recorded.
   *
   * @throws ServiceError not_found; conflict if it was changed since `expected`, or if it cannot be decrypted
   */
  update(id: string, change: WebhookChange, by: Actor, expected: Expected = null): Promise<WebhookView> {
    return this.dataSource.transaction(async (manager) => {
      const row = await findLocked(manager, id, expected);
      const present = this.open(row);
      const url = change.url ?? present.url;
      const events = change.events ?? row.events;
      const isMoved = url !== present.url;
      if (!isMoved && JSON.stringify(events) === JSON.stringify(row.events)) return this.view(row);
      const sealed = this.secrets.seal(id, { ...present, url });
      await manager.query(UPDATE, [id, shownUrl(url), events, sealed]);
      const after = this.view(await find(manager, id));
      await recordChange(manager, by, {
        action: 'changed',
        type: 'webhook',
        before: settingsOf(this.view(row)),
        after: settingsOf(after),
        // The part that differs may be hidden.
        more: isMoved ? { url_changed: true } : {},
      });
      return after;
    });
  }

  /** @throws ServiceError not_found; conflict if it was changed since `expected` */
  remove(id: string, by: Actor, expected: Expected = null): Promise<void> {
    return this.dataSource.transaction(async (manager) => {
      const row = await findLocked(manager, id, expected);
      await manager.query(DELETE, [id]);
      const before = settingsOf(this.view(row));
      await recordChange(manager, by, { action: 'removed', type: 'webhook', before, after: null });
    });
  }

  /** Sends an event of its own type, once. @throws ServiceError not_found, conflict if it cannot be decrypted */
  async test(id: string): Promise<WebhookTestResult> {
    const row = await find(this.dataSource.manager, id);
    const { url, secret } = this.open(row);
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
    try {
      return webhookView(row, this.isReadable(row));
    } catch (error) {
      // Without a master key (a command) the state cannot be determined.
      if (!(error instanceof ServiceError)) throw error;
      return webhookView(row, true);
    }
  }

  /** @throws ServiceError invalid without a master key */
  private isReadable({ id, sealed }: WebhookRow): boolean {
    try {
      this.secrets.open(id, sealed);
      return true;
    } catch (error) {
      if (error instanceof SecretBoxError) return false;
      throw error;
    }
  }

  private open({ id, sealed }: WebhookRow): WebhookTarget {
    try {
      return this.secrets.open(id, sealed);
    } catch (error) {
      if (!(error instanceof SecretBoxError)) throw error;
      throw ServiceError.of('conflict', 'secret_state', `cannot be decrypted: ${error.message}`);
    }
  }
}

async function find(manager: EntityManager, id: string): Promise<WebhookRow> {
  const [row] = isUuid(id) ? await manager.query<WebhookRow[]>(FIND, [id]) : [];
  if (row !== undefined) return row;
  throw ServiceError.of('not_found', 'id', 'no webhook has this id; list the webhooks to find it');
}

async function findLocked(manager: EntityManager, id: string, expected: Expected): Promise<WebhookRow> {
  await manager.query(LOCK_CHANGES);
  if (isUuid(id)) await manager.query(LOCK, [id]);
  const row = await find(manager, id);
  mustBeExpected('webhook', row, expected);
  return row;
}
