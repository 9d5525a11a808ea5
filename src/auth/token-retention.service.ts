import { Injectable, Logger } from '@nestjs/common';
import { deleteSome, Retention } from '../database/retention.js';

/** A day is enough to find out whose a token in a log was. */
const DELETE_ENDED = deleteSome(
  'gateway_key_secret',
  'id',
  `kind <> 'key' AND expires_at < now() - interval '1 day'`,
);

/** Deletes tokens that ended more than a day ago. */
@Injectable()
export class TokenRetention extends Retention {
  protected readonly logger = new Logger('Keys');
  protected readonly failure = 'Ended tokens could not be deleted';

  run(): Promise<void> {
    return this.repeatDelete(DELETE_ENDED);
  }
}
