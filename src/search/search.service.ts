import { Injectable } from '@nestjs/common';
import type { Scope } from '../admin/access/access.js';
import { isUuid } from '../database/page.js';
import { ServiceError } from '../errors/service-error.js';
import { fullName } from '../keys/key-view.js';
import { KeysService } from '../keys/keys.service.js';
import { isShownPrefix } from '../platform/api-key.js';
import { LogSearch } from '../requests/log-search.js';
import { RequestLogReader } from '../requests/request-log.reader.js';
import type { RequestView } from '../requests/request-view.js';
import { TeamsService } from '../teams/teams.service.js';
import { UsedModels } from '../usage/used-models.service.js';
import type { Found, SearchRequest, SearchResult } from './search.schema.js';

/** Of each kind. */
const SHOWN = 5;
/** From which the best are chosen. */
const READ = 50;

/** Finds calls, teams, keys, models, end users and sessions by what a person has of them. */
@Injectable()
export class SearchService {
  constructor(
    private readonly teams: TeamsService,
    private readonly keys: KeysService,
    private readonly requests: RequestLogReader,
    private readonly models: UsedModels,
    private readonly log: LogSearch,
  ) {}

  /** @param signal ends a search of the log early @throws HttpException 429 if too many searches of the log are waiting */
  async find(
    { q, in: place, before }: SearchRequest,
    scope: Scope,
    signal: AbortSignal,
  ): Promise<SearchResult> {
    const named = place === 'log' ? [] : await this.named(q, scope);
    // An ID of ours has an index, and so have keys: what they find is all there is.
    if (place === 'names' || isUuid(q) || q.startsWith('ptn_')) return { data: named, log: null };
    const { from, isWhole, ...found } = await this.log.find(q, scope, before ?? null, signal);
    const calls = await Promise.all(found.calls.map((id) => this.requests.get(id, scope)));
    const known = new Set(named.map(({ kind, name }) => `${kind}:${name}`));
    const inLog = (['model', 'end_user', 'session'] as const).flatMap((kind): Found[] => {
      const at = found[kind];
      return at === null || known.has(`${kind}:${q}`)
        ? []
        : [{ kind, id: null, name: q, team: null, at: at.toISOString() }];
    });
    return {
      data: [...calls.map(foundCall), ...named, ...inLog],
      log: { from: from.toISOString(), whole: isWhole },
    };
  }

  private async named(q: string, scope: Scope): Promise<Found[]> {
    if (isUuid(q)) return this.byId(q, scope);
    if (q.startsWith('ptn_')) return this.byPrefix(q, scope);
    const [teams, exactly, keys, models] = await Promise.all([
      this.teams.list({ search: q, limit: READ }, scope),
      this.keys.list({ name: q, limit: READ }, scope),
      this.keys.list({ search: q, limit: READ }, scope),
      this.models.find(q, scope, SHOWN),
    ]);
    const all = new Map([...exactly.data, ...keys.data].map((key) => [key.id, key]));
    const team = await found(this.teams.get(q, scope));
    return [
      ...best(q, [...(team === null ? [] : [team]), ...teams.data], ({ name }) => [name])
        .filter(({ id }, i, found) => found.findIndex((other) => other.id === id) === i)
        .slice(0, SHOWN)
        .map(foundTeam),
      ...best(q, [...all.values()], (key) => [key.name, fullName(key), `${key.team} ${key.name}`])
        .slice(0, SHOWN)
        .map(foundKey),
      ...models.map((name): Found => ({ kind: 'model', id: null, name, team: null, at: null })),
    ];
  }

  private async byId(id: string, scope: Scope): Promise<Found[]> {
    const key = await found(this.keys.get(id, scope));
    if (key !== null) return [foundKey(key)];
    const team = await found(this.teams.get(id, scope));
    if (team !== null) return [foundTeam(team)];
    const call = (await found(this.requests.get(id, scope))) ?? (await this.requests.lastAttempt(id, scope));
    return call === null ? [] : [foundCall(call)];
  }

  private async byPrefix(prefix: string, scope: Scope): Promise<Found[]> {
    // What cannot be the beginning of a key is not looked for.
    if (!isShownPrefix(prefix.padEnd(12, '0'))) return [];
    const { data } = await this.keys.list({ prefix, limit: SHOWN }, scope);
    return data.map(foundKey);
  }
}

/** Null for what is not there. */
async function found<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ServiceError && error.kind === 'not_found') return null;
    throw error;
  }
}

/** Those of exactly this name first, then those that begin with the text, then those that have it as it is. */
function best<T>(text: string, rows: readonly T[], namesOf: (row: T) => string[]): T[] {
  const wanted = text.toLowerCase();
  const rank = (row: T) => {
    const names = namesOf(row).map((name) => name.toLowerCase());
    if (names.includes(wanted)) return 0;
    if (names.some((name) => name.startsWith(wanted))) return 1;
    return names.some((name) => name.includes(wanted)) ? 2 : 3;
  };
  return rows
    .map((row) => ({ row, rank: rank(row) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ row }) => row);
}

function foundTeam({ id, name }: { id: string; name: string }): Found {
  return { kind: 'team', id, name, team: null, at: null };
}

function foundKey({ id, name, team }: { id: string; name: string; team: string }): Found {
  return { kind: 'key', id, name, team, at: null };
}

function foundCall({ id, team, provider_request_id: ofProvider, started_at: at }: RequestView): Found {
  return { kind: 'request', id, name: ofProvider ?? id, team, at };
}
