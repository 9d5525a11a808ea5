import { Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';
import type { EventType } from './event-types.js';

/** Something that happened, stored in the transaction that caused it. */
@Entity('webhook_event', {
  comment: 'Outbox: events that are delivered to webhooks, stored with what caused them.',
})
@Unique('webhook_event_once_key', ['once'])
export class WebhookEvent {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'webhook_event_pkey' })
  id!: string;

  @Column('text')
  type!: EventType;

  @Index('webhook_event_created_at_idx')
  @Column('timestamptz', { name: 'created_at', default: () => 'clock_timestamp()' })
  createdAt!: Date;

  @Column('jsonb')
  data!: object;

  /** Identifies an event that must not occur twice. */
  @Column('text', { nullable: true })
  once!: string | null;
}
