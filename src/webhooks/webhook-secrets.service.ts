import { randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { RowSecrets } from '../database/row-secrets.js';
import { SECRET_PREFIX } from './webhook-message.js';

/** What is secret of a webhook. */
export interface WebhookTarget {
  /** URLs of receivers such as Slack are credentials. */
  url: string;
  /** Signs messages, `whsec_…`; null for a format without signatures. */
  secret: string | null;
}

/** 32 bytes, of the 24 to 64 that Standard Webhooks allow. */
const SECRET_BYTES = 32;

export function newSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** Encrypts and decrypts what is secret of webhooks. */
@Injectable()
export class WebhookSecrets extends RowSecrets<WebhookTarget> {
  readonly table = 'webhook';
  readonly name = 'shown_url';
  readonly label = `'webhook ' || id`;
}
