import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { audited } from '../audit/audited.js';
import { isUuid, type Page } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import type { Actor } from '../platform/actor.js';
import { payloadOf } from './webhook-message.js';
import { WebhookSecrets } from './webhook-secrets.service.js';
import { deliveryState, messageOfAttempt } from './webhook-view.js';
import type { EventType } from './event-types.js';
import { Webhook } from './webhook.entity.js';
import type { DeliveryFilter, ListedDelivery, Replay } from './webhooks.schema.js';
import { WEBHOOK, WebhooksService } from './webhooks.service.js';

interface Row {
  id: string;
  type: EventType;
  created_at: Date;
  /** With microseconds, for the cursor. */
  place: string;
  data: Record<string, unknown>;
  attempts: number;
  next_attempt_at: Date | null;
  attempted_at: Date | null;
  delivered_at: Date | null;
  status: number | null;
  error: string | null;
}

const STATE = `
  CASE WHEN d.delivered_at IS NOT NULL THEN 'delivered'
       WHEN d.next_attempt_at IS NULL THEN 'failed'
       WHEN d.attempts = 0 THEN 'waiting'
       ELSE 'retrying' END`;
const SELECT_DELIVERIES = `
  SELECT e.id, e.type, e.created_at, e.created_at::text AS place, e.data, d.attempts, d.next_attempt_at, d.attempted_at,
         d.delivered_at, d.status, d.error
  FROM webhook_delivery d JOIN webhook_event e ON e.id = d.event_id
  WHERE d.webhook_id = $1`;
const FIND = `${SELECT_DELIVERIES} AND d.event_id = $2`;
const LIST = `${SELECT_DELIVERIES}
    AND ($2::text IS NULL OR ${STATE} = $2)
    AND ($3::timestamptz IS NULL OR (e.created_at, e.id) < ($3, $4::uuid))
  ORDER BY e.created_at DESC, e.id DESC LIMIT $5`;

/** As many attempts as at first, the first one at once. The result of one that is under way is no longer recorded. */
const REPLAY = `
  UPDATE webhook_delivery
  SET attempts = 0, next_attempt_at = clock_timestamp(), attempted_at = NULL, delivered_at = NULL, status = NULL, error = NULL
  WHERE webhook_id = $1 AND event_id = $2 RETURNING 1`;

/** Lists the deliveries of a webhook, and repeats one. */
@Injectable()
export class DeliveryListService {
  constructor(
    @InjectRepository(Webhook) private readonly webhooks: Repository<Webhook>,
    private readonly service: WebhooksService,
    private readonly secrets: WebhookSecrets,
  ) {}

  /** Newest event first. @throws ServiceError not_found for the webhook, invalid for a foreign cursor */
  async list(id: string, { state, limit, cursor }: DeliveryFilter): Promise<Page<ListedDelivery>> {
    const webhook = await this.service.get(id);
    const after = placeOf(cursor);
    const values = [webhook.id, state ?? null, after?.at ?? null, after?.id ?? null, limit + 1];
    const rows = await this.webhooks.query<Row[]>(LIST, values);
    const shown = rows.slice(0, limit);
    return { data: shown.map(view), next_cursor: rows.length > limit ? cursorOf(shown.at(-1)!) : null };
  }

  /**
   * Sends an event to a webhook once more, with the same ID and body, and repeats it as a new one is repeated.
   *
   * @throws ServiceError not_found for the webhook, or if it has no such delivery; conflict if it cannot be decrypted
   */
  async replay(id: string, { event_id: event }: Replay, by: Actor): Promise<ListedDelivery> {
    const webhook = await audited(
      this.webhooks.manager,
      WEBHOOK,
      { id, action: 'replayed', by },
      async (manager, row) => {
        this.secrets.mustOpen(row.id, row.sealed);
        const [found] = await manager.query<[unknown[], number]>(REPLAY, [row.id, event]);
        if (found.length > 0) return { event_id: event };
        throw ServiceError.of(
          'not_found',
          'event_id',
          'this webhook has no delivery of this event; events are kept for 30 days',
        );
      },
    );
    const [row] = await this.webhooks.query<[Row]>(FIND, [webhook.id, event]);
    return view(row);
  }
}

function view(row: Row): ListedDelivery {
  return {
    event_id: row.id,
    type: row.type,
    created_at: row.created_at.toISOString(),
    data: payloadOf(row).data,
    state: row.attempts === 0 && row.next_attempt_at !== null ? 'waiting' : deliveryState(row),
    attempts: row.attempts,
    attempted_at: row.attempted_at?.toISOString() ?? null,
    next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
    status: row.status,
    error: row.error,
    message: messageOfAttempt(row.error),
  };
}

function cursorOf({ place, id }: Row): string {
  return Buffer.from(JSON.stringify([place, id])).toString('base64url');
}

const TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d){0,2}$/;

/** @throws ServiceError invalid for a cursor that no page returned */
function placeOf(cursor: string | undefined): { at: string; id: string } | null {
  if (cursor === undefined) return null;
  try {
    const place = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown;
    const [at, id] = Array.isArray(place) ? (place as unknown[]) : [];
    if (typeof at === 'string' && TIME.test(at) && typeof id === 'string' && isUuid(id)) return { at, id };
  } catch {
    // Not JSON: the same error.
  }
  throw ServiceError.of(
    'invalid',
    'cursor',
    'must be the next_cursor of a page before; leave it out to begin',
  );
}
