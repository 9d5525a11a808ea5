import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import { WebhookEvent } from './webhook-event.entity.js';
import { Webhook } from './webhook.entity.js';

const KEY = { primaryKeyConstraintName: 'webhook_delivery_pkey' };

/** The delivery of one event to one webhook. */
@Entity('webhook_delivery', { comment: 'Outbox: the delivery of each event to each webhook.' })
export class WebhookDelivery {
  @PrimaryColumn('uuid', { ...KEY, name: 'webhook_id' })
  webhookId!: string;

  @Index('webhook_delivery_event_id_idx')
  @PrimaryColumn('uuid', { ...KEY, name: 'event_id' })
  eventId!: string;

  @ManyToOne(() => Webhook, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'webhook_id', foreignKeyConstraintName: 'webhook_delivery_webhook_id_fkey' })
  webhook!: Webhook;

  @ManyToOne(() => WebhookEvent, { onDelete: 'CASCADE' })
  @JoinColumn({ name: 'event_id', foreignKeyConstraintName: 'webhook_delivery_event_id_fkey' })
  event!: WebhookEvent;

  @Column('smallint', { default: 0 })
  attempts!: number;

  /** Null: it was delivered, or the last attempt failed. */
  @Index('webhook_delivery_due_idx', { where: 'next_attempt_at IS NOT NULL' })
  @Column('timestamptz', { name: 'next_attempt_at', nullable: true, default: () => 'clock_timestamp()' })
  nextAttemptAt!: Date | null;

  @Column('timestamptz', { name: 'attempted_at', nullable: true })
  attemptedAt!: Date | null;

  @Column('timestamptz', { name: 'delivered_at', nullable: true })
  deliveredAt!: Date | null;

  /** HTTP status of the last attempt; null without a response. */
  @Column('smallint', { nullable: true })
  status!: number | null;

  /** Why the last attempt failed. */
  @Column('text', { nullable: true })
  error!: string | null;
}
