import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { CLOSE_TIMEOUT, withTimeout } from '../platform/patience.js';
import { messageOf, type StoredEvent } from './webhook-message.js';
import { WebhookSecrets } from './webhook-secrets.service.js';
import { type Attempt, WebhookSender } from './webhook-sender.service.js';
import type { WebhookFormat } from './webhook.entity.js';

const EVERY_MS = 2_000;
const AT_ONCE = 10;
/**
 * Seconds from each attempt to the next: 8 attempts in 24 hours. An attempt takes 10 s at most, so it is over when the
 * next is due.
 */
const PAUSES_S = [15, 120, 900, 3_600, 10_800, 25_200, 45_765];
const MAX_ATTEMPTS = PAUSES_S.length + 1;
/** After the last attempt nothing is due, unless its process dies during it: then it is repeated. */
const LAST_PAUSE_S = 60;

/** Planning TAKE takes Postgres ten times as long, every 2 s for each replica, and there is seldom one. */
const IS_DUE =
  'SELECT EXISTS (SELECT FROM webhook_delivery WHERE next_attempt_at <= clock_timestamp()) AS due';

/**
 * Takes deliveries that are due. It sets when the next attempt is due before this one begins: no other process takes the
 * delivery meanwhile, and if this process dies, another one repeats the attempt.
 */
const TAKE = `
  WITH due AS MATERIALIZED (
    SELECT webhook_id, event_id FROM webhook_delivery WHERE next_attempt_at <= clock_timestamp()
    ORDER BY next_attempt_at LIMIT $1 FOR UPDATE SKIP LOCKED)
  UPDATE webhook_delivery d
  SET attempts = d.attempts + 1, attempted_at = clock_timestamp(), status = NULL, error = NULL,
      next_attempt_at = clock_timestamp() + make_interval(secs => COALESCE(($2::int[])[d.attempts + 1], ${LAST_PAUSE_S}))
  FROM due
  JOIN webhook w ON w.id = due.webhook_id
  JOIN webhook_event e ON e.id = due.event_id
  WHERE (d.webhook_id, d.event_id) = (due.webhook_id, due.event_id)
  RETURNING d.webhook_id, d.attempts, w.format, w.sealed, w.shown_url, e.id, e.type, e.created_at, e.data`;

const RECORD = `
  UPDATE webhook_delivery
  SET status = $4, error = $5, delivered_at = CASE WHEN $5::text IS NULL THEN clock_timestamp() END,
      next_attempt_at = CASE WHEN $5::text IS NOT NULL AND attempts < ${MAX_ATTEMPTS} THEN next_attempt_at END
  WHERE webhook_id = $1 AND event_id = $2 AND attempts = $3`;

type Delivery = StoredEvent & {
  webhook_id: string;
  attempts: number;
  format: WebhookFormat;
  sealed: Buffer;
  shown_url: string;
};

/** Delivers the events of the outbox, each at least once. */
@Injectable()
export class WebhookDeliveries implements OnModuleDestroy {
  /** Attempts since the start: that succeeded, that will be repeated, and that were the last. */
  readonly counts = { delivered: 0, retrying: 0, failed: 0 };
  private readonly logger = new Logger('Webhooks');
  private readonly underWay = new Set<Promise<void>>();
  private readonly stopping = new AbortController();
  private taking: Promise<void> | null = null;

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    private readonly secrets: WebhookSecrets,
    private readonly sender: WebhookSender,
    @InjectSettings() private readonly env: Settings,
  ) {}

  @Interval(EVERY_MS)
  onInterval(): void {
    if (this.env.worker !== 1 || this.database.notReady !== null || this.stopping.signal.aborted) return;
    this.taking ??= this.take().finally(() => (this.taking = null));
  }

  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    await withTimeout(CLOSE_TIMEOUT.ms, Promise.all([this.taking, ...this.underWay]));
  }

  /** Starts as many attempts as may run at once. Never rejects. */
  private async take(): Promise<void> {
    const limit = AT_ONCE - this.underWay.size;
    if (limit <= 0) return;
    try {
      const [{ due: isDue }] = await this.dataSource.query<[{ due: boolean }]>(IS_DUE);
      if (!isDue) return;
      const [due] = await this.dataSource.query<[Delivery[], number]>(TAKE, [limit, PAUSES_S]);
      for (const delivery of due) {
        const attempt = this.attempt(delivery).finally(() => this.underWay.delete(attempt));
        this.underWay.add(attempt);
      }
    } catch (error) {
      if (!this.stopping.signal.aborted)
        this.logger.warn(`Webhooks cannot be delivered right now: ${describeError(error)}`);
    }
  }

  private async attempt(delivery: Delivery): Promise<void> {
    const result = await this.send(delivery);
    // An attempt that was interrupted by the stop is repeated when it is due.
    if (result.error !== null && this.stopping.signal.aborted) return;
    const { webhook_id: webhook, id: event, attempts } = delivery;
    try {
      await this.dataSource.query(RECORD, [webhook, event, attempts, result.status, result.error]);
    } catch (error) {
      this.logger.warn(
        `The result of a delivery is not recorded, it will be repeated: ${describeError(error)}`,
      );
    }
    this.count(delivery, result);
  }

  private async send({ webhook_id: webhook, sealed, format, ...event }: Delivery): Promise<Attempt> {
    try {
      const { url, secret } = this.secrets.open(webhook, sealed);
      return await this.sender.send(url, messageOf(event, format, secret), this.stopping.signal);
    } catch (error) {
      // Encrypted with another master key, or damaged.
      this.logger.error(`Event ${event.id} cannot be sent to webhook ${webhook}: ${describeError(error)}`);
      return { status: null, error: 'unreadable' };
    }
  }

  private count({ webhook_id, type, attempts, shown_url }: Delivery, { status, error }: Attempt): void {
    if (error === null) {
      this.counts.delivered++;
      return;
    }
    const isLast = attempts >= MAX_ATTEMPTS;
    this.counts[isLast ? 'failed' : 'retrying']++;
    // The first and the last attempt: the others tell nothing new.
    if (attempts > 1 && !isLast) return;
    const what = `${type} was not delivered to webhook ${webhook_id} (${shown_url}): ${error}${status === null ? '' : ` ${status}`}.`;
    if (isLast) this.logger.error(`${what} No further attempt follows.`);
    else this.logger.warn(`${what} It is tried again.`);
  }
}
