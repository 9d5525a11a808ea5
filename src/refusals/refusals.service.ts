import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import type { Scope } from '../admin/access/access.js';
import type { Grant } from '../auth/caller.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { KeyNames } from '../keys/key-names.service.js';
import { INSTALLATION } from '../limit-rules/limit-rule.entity.js';
import { LimitRules } from '../limit-rules/limit-rules.service.js';
import { CallFilters } from '../requests/call-filters.js';
import { ReaderPool } from '../requests/reader-pool.js';
import { OTHER_ID, UNKNOWN_ID } from './refusal.entity.js';
import type {
  OwnRefusalFilter,
  OwnRefusals,
  RefusalFilter,
  RefusalGroup,
  RefusalInterval,
  RefusalPage,
  RefusalView,
} from './refusals.schema.js';

const DAY_MS = 86_400_000;
const OWN_GROUPS = ['code', 'limit', 'provider', 'model'] as const;
const MAX_OWN = 100;

const COLUMNS: Record<RefusalGroup, readonly string[]> = {
  team: ['team_id'],
  key: ['team_id', 'key_id'],
  code: ['code'],
  limit: ['rule_nr'],
  provider: ['provider'],
  model: ['model'],
};
const STARTS: Record<RefusalInterval, string> = {
  minute: 'minute',
  hour: `date_trunc('hour', minute, $6)`,
  day: `date_trunc('day', minute, $6)`,
};

interface Row {
  start?: Date;
  team_id?: string;
  key_id?: string;
  code?: string;
  rule_nr?: string;
  provider?: string;
  model?: string;
  calls: number;
  last_at: Date;
  last_id: string;
  total: number;
}

interface Asked {
  groups: readonly RefusalGroup[];
  interval?: RefusalInterval;
  tz?: string;
  from?: Date;
  to?: Date;
  /** IDs. */
  teams: readonly string[] | null;
  key?: string;
  code?: string;
  limit: number;
}

function sql(groups: readonly RefusalGroup[], interval: RefusalInterval | undefined): string {
  const columns = [...new Set(groups.flatMap((group) => COLUMNS[group]))];
  const shown = interval === undefined ? columns : [`${STARTS[interval]} AS start`, ...columns];
  const by = shown.map((_, i) => i + 1).join(', ');
  return `
    SELECT ${[...shown, 'sum(calls)::float8 AS calls', 'max(last_at) AS last_at'].join(', ')},
           (array_agg(last_id ORDER BY last_at DESC))[1] AS last_id, (sum(sum(calls)) OVER ())::float8 AS total
    FROM refusal
    WHERE minute >= date_trunc('minute', $1::timestamptz) AND minute < $2 AND ($3::uuid[] IS NULL OR team_id = ANY ($3))
      AND ($4::uuid IS NULL OR key_id = $4) AND ($5::text IS NULL OR code = $5) AND $6::text IS NOT NULL
    ${by === '' ? 'HAVING count(*) > 0' : `GROUP BY ${by}`}
    ORDER BY ${interval === undefined ? '' : 'start DESC, '}calls DESC, last_at DESC LIMIT $7`;
}

/** Reads how many requests were rejected, and why. */
@Injectable()
export class RefusalsService {
  constructor(
    private readonly names: KeyNames,
    private readonly rules: LimitRules,
    private readonly filters: CallFilters,
    private readonly pool: ReaderPool,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /** Those of the last 24 hours without a range. @throws ServiceError not_found for an unknown team or key */
  async list({ group_by: groups, ...filter }: RefusalFilter, scope: Scope): Promise<RefusalPage> {
    const { team, teams = null, ...asked } = await this.filters.resolve(filter, scope);
    const rows = await this.read(this.pool.of(scope), {
      ...asked,
      groups,
      teams: team === undefined ? teams : [team],
    });
    return { data: await this.shown(rows), next_cursor: null, calls: rows[0]?.total ?? 0 };
  }

  /** Those of one key. */
  async ofCaller({ keyId, teamId }: Grant, range: OwnRefusalFilter): Promise<OwnRefusals> {
    const asked = { ...range, groups: OWN_GROUPS, teams: [teamId], key: keyId, limit: MAX_OWN };
    const rows = await this.read(this.pool.self, asked);
    const data = (await this.shown(rows)).map(({ limit_id: _, ...row }) => row);
    return { data: data as OwnRefusals['data'], calls: rows[0]?.total ?? 0 };
  }

  private async read(pool: pg.Pool, asked: Asked): Promise<Row[]> {
    const { to = new Date(), from = new Date(to.getTime() - DAY_MS), teams, key, code, limit } = asked;
    const zone = asked.tz ?? this.env.reportTimezone;
    const values = [from, to, teams, key ?? null, code ?? null, zone, limit];
    return (await pool.query<Row>(sql(asked.groups, asked.interval), values)).rows;
  }

  private async shown(rows: readonly Row[]): Promise<RefusalView[]> {
    const rules = await this.rules.byNumber(rows.flatMap(({ rule_nr: nr }) => nr ?? []));
    const owners = [...rules.values()].map(({ owner }) => owner);
    const teams = await this.names.ofTeams([...rows.flatMap(({ team_id: id }) => id ?? []), ...owners]);
    const keys = await this.names.ofKeys([...rows.flatMap(({ key_id: id }) => id ?? []), ...owners]);
    const ownerOf = (id: string) => {
      if (id === INSTALLATION) return 'installation';
      const key = keys.get(id);
      return key === undefined ? teams.get(id) : `${key.team}/${key.name}`;
    };
    return rows.map((row) => {
      const rule = rules.get(row.rule_nr ?? '');
      return {
        ...(row.start !== undefined && { start: row.start.toISOString() }),
        ...(row.team_id !== undefined && {
          team: teams.get(row.team_id) ?? null,
          team_id: known(row.team_id),
        }),
        ...(row.key_id !== undefined && {
          key: row.key_id === OTHER_ID ? '(other)' : (keys.get(row.key_id)?.name ?? null),
          key_id: known(row.key_id),
        }),
        ...(row.code !== undefined && { code: row.code }),
        ...(row.rule_nr !== undefined && {
          limit: rule === undefined ? null : `${ownerOf(rule.owner) ?? '?'} ${kindOf(rule)}`,
          limit_id: rule?.id ?? null,
        }),
        ...(row.provider !== undefined && { provider: row.provider || null }),
        ...(row.model !== undefined && { model: row.model || null }),
        calls: row.calls,
        last_at: row.last_at.toISOString(),
        last_request_id: row.last_id,
      };
    });
  }
}

function known(id: string): string | null {
  return id === UNKNOWN_ID || id === OTHER_ID ? null : id;
}

/** As `postern limits list` names it. */
function kindOf({ resource, period, scope }: { resource: string; period: string; scope: string }): string {
  const each = scope.endsWith('_end_user') ? ' each user' : '';
  return period === 'at_once' ? `calls at once${each}` : `${resource}/${period}${each}`;
}
