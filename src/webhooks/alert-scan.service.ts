import { Injectable, Logger } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { DataSource } from 'typeorm';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { ADVISORY_LOCKS } from '../database/advisory-locks.js';
import { DatabaseService } from '../database/database.service.js';
import { describeError } from '../errors/describe-error.js';
import { LAST_EXPIRY_SQL } from '../keys/key-view.js';

const EVERY_MS = 60_000;
/** Clients can make up names of models. Those beyond this number are announced on the next days. */
const MAX_MODELS_A_DAY = 50;
/** Longer than an event must be remembered so that it is not announced twice. */
const RETENTION_DAYS = 30;

const LOCK = 'SELECT pg_try_advisory_xact_lock($1) AS locked';

/**
 * Keys that expire within 7 days, and again within 1 day. A key that is newer than that by its creation is short-lived on
 * purpose. An extended key is announced again before its new expiry. What the next sign-in of its owner moves is not announced.
 */
const EXPIRING_KEYS = `
  SELECT webhook_emit('key.expiring', data, once) FROM (
    SELECT format('key.expiring %s %s %s', k.id, n.days, extract(epoch FROM n.at)) AS once,
           jsonb_build_object('team', t.name, 'team_id', t.id, 'key', k.name, 'key_id', k.id, 'prefix', s.prefix,
             'expires_at', to_char(n.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
             'days', ceil(extract(epoch FROM n.at - now()) / 86400)) AS data
    FROM gateway_key k
    JOIN team t ON t.id = k.team_id
    CROSS JOIN LATERAL (SELECT ${LAST_EXPIRY_SQL} AS at) last
    CROSS JOIN LATERAL (SELECT last.at, CASE WHEN last.at <= now() + interval '1 day' THEN 1 ELSE 7 END AS days) n
    LEFT JOIN LATERAL (
      SELECT prefix FROM gateway_key_secret WHERE key_id = k.id AND kind = 'key' ORDER BY id DESC LIMIT 1) s ON true
    WHERE n.at > now() AND n.at <= now() + interval '7 days'
      AND k.created_at <= n.at - make_interval(days => n.days)
      AND k.revoked_at IS NULL AND NOT k.disabled AND NOT t.disabled) expiring
  WHERE NOT EXISTS (SELECT FROM webhook_event e WHERE e.once = expiring.once)`;

/** Each model once. Names are hashed, because an index holds only short values. */
const MISSING_PRICES = `
  SELECT webhook_emit('price.missing', data, once) FROM (
    SELECT * FROM (
      SELECT 'price.missing ' || md5(provider || ' ' || model) AS once, min(day) AS first_day,
             jsonb_build_object('provider', provider, 'model', model, 'first_day', to_char(min(day), 'YYYY-MM-DD')) AS data
      FROM unpriced_model WHERE priced_at IS NULL GROUP BY provider, model) models
    WHERE NOT EXISTS (SELECT FROM webhook_event e WHERE e.once = models.once)
    ORDER BY first_day, once
    LIMIT GREATEST($1 - (
      SELECT count(*) FROM webhook_event WHERE type = 'price.missing' AND created_at > now() - interval '1 day'), 0)) missing`;

const DELETE_OLD = `DELETE FROM webhook_event WHERE created_at < now() - interval '${RETENTION_DAYS} days'`;

/** Finds what is announced without a change that causes it, in one process at a time, and deletes old events. */
@Injectable()
export class AlertScan {
  private readonly logger = new Logger('Webhooks');

  constructor(
    private readonly dataSource: DataSource,
    private readonly database: DatabaseService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  @Interval(EVERY_MS)
  async onInterval(): Promise<void> {
    if (this.env.worker !== 1 || this.database.notReady !== null) return;
    await this.run().catch((error: unknown) => {
      this.logger.warn(`Alerts could not be searched for, trying again: ${describeError(error)}`);
    });
  }

  /** One pass; does nothing while another process makes one. */
  async run(): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      const [row] = await manager.query<{ locked: boolean }[]>(LOCK, [ADVISORY_LOCKS.alerts]);
      if (!row!.locked) return;
      await manager.query(EXPIRING_KEYS);
      await manager.query(MISSING_PRICES, [MAX_MODELS_A_DAY]);
      await manager.query(DELETE_OLD);
    });
  }
}
