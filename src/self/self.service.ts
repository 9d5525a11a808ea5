import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import type { Grant } from '../auth/caller.js';
import { GatewayError } from '../errors/gateway-error.js';
import type { EndpointRule, IdempotencyMode } from '../keys/gateway-key.entity.js';
import { grantedProviders, PROVIDER_LISTS, type ProviderLists } from '../keys/own-key.js';
import { LedgerService } from '../limits/ledger/ledger.service.js';
import { LimitsService } from '../limits/limits.service.js';
import { ReaderPool } from '../requests/reader-pool.js';
import { UsageTotals } from '../usage/usage-totals.js';
import {
  OWN_LIMIT,
  OWN_SUMS,
  SHARED_LIMIT,
  type OwnKey,
  type OwnUsage,
  type OwnUsageQuery,
} from './self.schema.js';

interface KeyRow extends ProviderLists {
  name: string;
  prefix: string;
  team: string;
  expires_at: Date | null;
  secret_expires_at: Date | null;
  endpoints: EndpointRule;
  idempotency: IdempotencyMode;
  models: string[] | null;
  team_models: string[] | null;
}

const FIND_KEY = `
  SELECT k.name, s.prefix, t.name AS team, k.expires_at, s.expires_at AS secret_expires_at, k.endpoints,
         ${PROVIDER_LISTS}, k.idempotency, k.models, t.models AS team_models
  FROM gateway_key k
  JOIN gateway_key_secret s ON s.key_id = k.id
  JOIN team t ON t.id = k.team_id
  WHERE k.id = $1 AND s.id = $2`;

/** Midnight of days in the time zone $1: today, tomorrow, the first of the month, $2, and the day after $3. */
const BOUNDS = `
  SELECT today.at AS today, date_trunc('month', today.at, $1) AS month,
         COALESCE($2::date::timestamp AT TIME ZONE $1, date_trunc('month', today.at, $1)) AS first,
         (COALESCE($3::date, (today.at AT TIME ZONE $1)::date) + 1)::timestamp AT TIME ZONE $1 AS last
  FROM (SELECT date_trunc('day', now(), $1) AS at) today`;

interface Bounds {
  today: Date;
  month: Date;
  first: Date;
  last: Date;
}

/** More than the days that a query may name. */
const MAX_DAYS = 400;

/** The data that a gateway key may read: its own. */
@Injectable()
export class SelfService {
  constructor(
    private readonly pool: ReaderPool,
    private readonly limits: LimitsService,
    private readonly ledger: LedgerService,
    private readonly totals: UsageTotals,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** @param endUser whose limits are shown too; null: none */
  async key({ keyId, secretId, teamId }: Grant, endUser: string | null): Promise<OwnKey> {
    const { rows } = await this.pool.self.query<KeyRow>(FIND_KEY, [keyId, secretId]);
    const [row] = rows;
    if (row === undefined) throw new GatewayError('invalid_api_key');
    const subject = endUser === null ? null : this.ledger.subjectOf(endUser);
    const limits = await this.limits.ofCaller(keyId, teamId, subject);
    const shared = await this.limits.sharedBy(teamId);
    return {
      name: row.name,
      prefix: row.prefix,
      team: row.team,
      status: 'active',
      expires_at: row.expires_at?.toISOString() ?? null,
      secret_expires_at: row.secret_expires_at?.toISOString() ?? null,
      endpoints: row.endpoints,
      providers: grantedProviders(row),
      idempotency: row.idempotency,
      models: row.models,
      team_models: row.team_models,
      limits: limits.map((limit) => pick(limit, OWN_LIMIT)),
      shared_limits: shared.map((limit) => ({
        ...pick(limit, SHARED_LIMIT),
        blocking: limit.state === 'blocking' || limit.state === 'exhausted',
      })),
    };
  }

  async usage({ keyId: key }: Grant, { from, to }: OwnUsageQuery): Promise<OwnUsage> {
    const zone = this.env.reportTimezone;
    const { rows } = await this.pool.self.query<Bounds>(BOUNDS, [zone, from ?? null, to ?? null]);
    const bounds = rows[0]!;
    const as_of = new Date().toISOString();
    const sums = (start: Date, end?: Date) =>
      this.totals.list(
        ['day'],
        { key, from: start, ...(end && { to: end }), limit: MAX_DAYS },
        zone,
        this.pool.self,
      );
    const today = await sums(bounds.today);
    const month = await sums(bounds.month);
    const days = await sums(bounds.first, bounds.last);
    return {
      time_zone: zone,
      as_of,
      today: pick(today.totals!, OWN_SUMS),
      this_month: pick(month.totals!, OWN_SUMS),
      days: days.data.map((row) => ({ day: row.day!, ...pick(row, OWN_SUMS) })),
    };
  }
}

/** Lists each field, so that a new one is not shown by accident. */
function pick<T extends object, N extends keyof T>(value: T, names: readonly N[]): Pick<T, N> {
  return Object.fromEntries(names.map((name) => [name, value[name]])) as Pick<T, N>;
}
