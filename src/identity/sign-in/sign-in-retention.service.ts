import { Injectable, Logger } from '@nestjs/common';
import { deleteSome, Retention } from '../../database/retention.js';

const DELETE = [
  deleteSome('device_request', 'id', `expires_at < now() - interval '1 day'`),
  deleteSome('refresh_token', 'digest', `used_at < now() - interval '1 day'`),
  // With their tokens, which have ended before.
  deleteSome('sign_in', 'id', `ended_at < now() - interval '90 days'`),
  deleteSome('sign_in', 'id', `ended_at IS NULL AND expires_at < now() - interval '90 days'`),
];

/** Deletes sign-ins 90 days after their end, and what they were begun and renewed with after a day. */
@Injectable()
export class SignInRetention extends Retention {
  protected readonly logger = new Logger('SignIn');
  protected readonly failure = 'Old sign-ins could not be deleted';

  async run(): Promise<void> {
    for (const statement of DELETE) await this.repeatDelete(statement);
  }
}
