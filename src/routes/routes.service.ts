import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { countOfChanges, LatestReading } from '../database/change-counter.js';
import { ChangeFeed } from '../database/change-feed.js';
import { DatabaseService } from '../database/database.service.js';
import { calledName, mustBeListed, otherTeam, type ProviderAccess } from '../providers/provider-access.js';
import { ProvidersService } from '../providers/providers.service.js';
import { makeRoute, type Route, type RouteSettings } from './route.js';

/** Every route in one snapshot, with the count of changes it reflects. No row: a null name. */
const READ_ROUTES = `
  SELECT c.value AS counted, r.name, r.targets, r.strategy, r.retry_on, r.max_attempts, r.dialect, r.is_default
  FROM (${countOfChanges('routes')}) c LEFT JOIN route r ON true`;

type RouteRow = Omit<RouteSettings, 'name'> & { counted: string; name: string | null };

/** Finds the route of each call. It holds all routes in memory, because there are few. */
@Injectable()
export class RoutesService {
  private byName: ReadonlyMap<string, Route> = new Map();
  private fallback: Route | null = null;
  private readonly latest = new LatestReading<RouteRow>((rows) => this.keep(rows));

  constructor(
    private readonly dataSource: DataSource,
    private readonly providers: ProvidersService,
    feed: ChangeFeed,
    database: DatabaseService,
  ) {
    database.whenReady(() => this.refresh());
    feed.subscribe('routes', {
      onChange: null,
      compare: (client) => this.latest.take(async () => (await client.query<RouteRow>(READ_ROUTES)).rows),
    });
  }

  /** Reads the routes now, so that a change made by this process takes effect before its response. */
  async refresh(): Promise<void> {
    await this.latest.take(() => this.dataSource.query<RouteRow[]>(READ_ROUTES));
  }

  /**
   * The route of a call; null if it uses none. Names are looked up as those of providers are.
   *
   * @param named the name in `/p/<name>/…`, or null
   * @throws GatewayError provider_not_allowed, also if a target belongs to another team
   */
  of(named: string | null, access: ProviderAccess): Route | null {
    if (this.byName.size === 0) return null;
    const name = calledName(named, access);
    const route = name === null ? this.default : this.byName.get(name);
    if (route === null || route === undefined) return null;
    mustBeListed(route.name, access);
    if (route.targets.some(({ provider }) => this.providers.isOfOtherTeam(provider, access.teamId)))
      throw otherTeam('route');
    return route;
  }

  /** Whether there is a route with this name. */
  has(name: string): boolean {
    return this.byName.has(name);
  }

  /** True if it is known that calls to `/v1` have no default, neither a provider nor a route. */
  get lacksDefault(): boolean {
    return this.fallback === null && this.providers.lacksDefault;
  }

  /**
   * Until when a target of a route gets no calls, as this process has seen it respond.
   *
   * @param position of the target in the route @returns ISO 8601; null if it gets calls
   */
  restingUntil(route: string, position: number, provider: string): string | null {
    const target = this.byName.get(route)?.targets[position];
    const ms = target?.provider === provider ? target.health.restsFor(performance.now()) : 0;
    return ms > 0 ? new Date(Date.now() + ms).toISOString() : null;
  }

  /** Each provider of each route, and whether a target with it rests. */
  resting(): { route: string; provider: string; rests: boolean }[] {
    const now = performance.now();
    return [...this.byName.values()].flatMap(({ name: route, targets }) =>
      [...new Set(targets.map(({ provider }) => provider))].map((provider) => ({
        route,
        provider,
        rests: targets.some((one) => one.provider === provider && one.health.restsFor(now) > 0),
      })),
    );
  }

  /** The one of the environment overrides what is stored, so that a row cannot change what a deployment has set. */
  private get default(): Route | null {
    return this.providers.environment === null ? this.fallback : null;
  }

  private keep(rows: readonly RouteRow[]): void {
    const byName = new Map<string, Route>();
    for (const { name, ...settings } of rows)
      if (name !== null) byName.set(name, makeRoute({ name, ...settings }, this.byName.get(name)));
    this.byName = byName;
    this.fallback = [...byName.values()].find(({ isDefault }) => isDefault) ?? null;
  }
}
