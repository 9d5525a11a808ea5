import { Injectable, Logger } from '@nestjs/common';
import { deleteSome, Retention } from '../../database/retention.js';
import { IS_OVER_AT } from './in-force.js';

const DELETE = [
  deleteSome('device_request', 'id', `expires_at < now() - interval '1 day'`),
  deleteSome('refresh_token', 'digest', `used_at < now() - interval '1 day'`),
  // With their tokens, which have ended before.
  deleteSome('sign_in', 'id', `ended_at < now() - interval '90 days'`),
];

/** Sign-ins that one statement ends or changes at most. */
const ROWS = 1_000;

/** Their last tokens end too, and a team that allows more days again does not revive them. */
const END_OVER = `
  WITH over AS MATERIALIZED (
    SELECT si.id, ${IS_OVER_AT} AS at
    FROM sign_in si JOIN gateway_key k ON k.id = si.key_id JOIN team t ON t.id = k.team_id
    WHERE si.ended_at IS NULL AND ${IS_OVER_AT} <= now()
    ORDER BY si.id LIMIT ${ROWS} FOR NO KEY UPDATE OF si SKIP LOCKED)
  UPDATE sign_in si SET ended_at = over.at, end_reason = 'over', idp_refresh = NULL FROM over WHERE si.id = over.id`;

/** Deletes refresh tokens of the provider that nothing uses any more. */
const forgetRefresh = (table: string, condition: string) => `
  UPDATE ${table} SET idp_refresh = NULL WHERE id IN (
    SELECT id FROM ${table} WHERE ${condition} AND idp_refresh IS NOT NULL
    ORDER BY id LIMIT ${ROWS} FOR NO KEY UPDATE SKIP LOCKED)`;

const CHANGE = [
  END_OVER,
  // Of those that an earlier version has ended: it kept the token.
  forgetRefresh('sign_in', 'ended_at IS NOT NULL'),
  // Of requests that were not redeemed in time. Their rows stay for a day.
  forgetRefresh('device_request', 'expires_at <= now()'),
];

/** Ends sign-ins that are over, and deletes them 90 days after their end, and what they were begun and renewed with after a day. */
@Injectable()
export class SignInRetention extends Retention {
  protected readonly logger = new Logger('SignIn');
  protected readonly failure = 'Old sign-ins could not be ended or deleted';

  async run(): Promise<void> {
    for (const statement of CHANGE)
      await this.repeat(async () => {
        const [, changed] = await this.dataSource.transaction((manager) =>
          manager.query<[object[], number]>(statement),
        );
        return changed === ROWS;
      });
    for (const statement of DELETE) await this.repeatDelete(statement);
  }
}
