import { Check, Column, Entity, PrimaryColumn, UpdateDateColumn, VersionColumn } from 'typeorm';
import type { EventType } from './event-types.js';

/** `standard`: JSON, signed as Standard Webhooks say; `slack`: a message for an incoming webhook of Slack. */
export const WEBHOOK_FORMATS = ['standard', 'slack'] as const;
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

/** Where events are delivered. */
@Entity('webhook', { comment: 'Where alerts are delivered.' })
@Check('webhook_format_check', `format IN ('standard', 'slack')`)
export class Webhook {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'webhook_pkey' })
  id!: string;

  /** Without what may be secret in it, see shownUrl(). */
  @Column('text', { name: 'shown_url' })
  shownUrl!: string;

  @Column('text', { array: true })
  events!: EventType[];

  @Column('text')
  format!: WebhookFormat;

  /** The URL and the secret, encrypted with MASTER_KEY and bound to this row. */
  @Column('bytea')
  sealed!: Buffer;

  /** For If-Match. TypeORM raises it with each update. */
  @VersionColumn({ default: 1 })
  version!: number;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt!: Date;

  @UpdateDateColumn({ type: 'timestamptz', name: 'updated_at', default: () => 'now()' })
  updatedAt!: Date;
}
