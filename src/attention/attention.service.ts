import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, MoreThan, type Repository } from 'typeorm';
import type { Scope } from '../admin/access/access.js';
import { KeysService } from '../keys/keys.service.js';
import { LimitsService } from '../limits/limits.service.js';
import { ReadinessService } from '../observability/readiness.service.js';
import { PoliciesService } from '../policies-by-url/policies.service.js';
import { PricesService } from '../pricing/prices.service.js';
import { ProviderHealthWatch } from '../provider-health/provider-health.service.js';
import { DatabaseRegression } from '../regressions/database-regression.entity.js';
import { StoredProvidersService } from '../providers/stored-providers.service.js';
import { SINKS_BEHIND } from '../sinks/sink-health.service.js';
import { SinksService } from '../sinks/sinks.service.js';
import { WebhooksService } from '../webhooks/webhooks.service.js';
import type { WebhookView } from '../webhooks/webhooks.schema.js';
import type { Attention, AttentionItem, AttentionKind } from './attention.schema.js';

/** How many of each kind are named; failing providers all are, because lists of providers mark them. */
const NAMED = 5;
/** One failed delivery may be a restart of its receiver. */
const FAILED_ATTEMPTS = 3;

/** Of losses whose changes are to be repeated. */
const LOSS_SHOWN_MS = 7 * 86_400_000;

type Name = Pick<AttentionItem['names'][number], 'id' | 'name'> & Partial<AttentionItem['names'][number]>;

/** Collects what needs somebody: a few small queries, one after the other, so that they take one connection. */
@Injectable()
export class AttentionService {
  constructor(
    private readonly keys: KeysService,
    private readonly limits: LimitsService,
    private readonly policies: PoliciesService,
    private readonly prices: PricesService,
    private readonly providers: StoredProvidersService,
    private readonly health: ProviderHealthWatch,
    private readonly sinks: SinksService,
    private readonly webhooks: WebhooksService,
    private readonly readiness: ReadinessService,
    @InjectRepository(DatabaseRegression) private readonly losses: Repository<DatabaseRegression>,
  ) {}

  /** @param scope members of teams see what concerns their keys and budgets */
  async list(scope: Scope): Promise<Attention> {
    const budgets = await this.limits.blocking(scope, NAMED);
    const keys = await this.keys.attention(scope, NAMED);
    const all = scope === null ? await this.ofAll() : NOTHING;
    const items = [
      all.missing,
      all.failing,
      item('budget_blocking', 'critical', budgets.names, budgets.count),
      ...all.operating,
      item('key_expiring', 'warning', keys.expiring.names, keys.expiring.count),
      item('key_old_secret', 'warning', keys.old_secret.names, keys.old_secret.count),
      all.unpriced,
      item('key_unused', 'info', keys.unused.names, keys.unused.count),
    ];
    return { data: items.filter((one) => one !== null && one.count > 0) as AttentionItem[] };
  }

  /** Losses that wait for a decision, and later ones with changes to repeat; the newest first. */
  private async openLosses(): Promise<DatabaseRegression[]> {
    const losses = await this.losses.find({
      where: [
        { state: In(['waiting', 'another_database']) },
        { state: 'put_back', noticedAt: MoreThan(new Date(Date.now() - LOSS_SHOWN_MS)) },
      ],
      order: { noticedAt: 'DESC' },
    });
    return losses.filter(({ state, lostEntries }) => state !== 'put_back' || lostEntries.length > 0);
  }

  private async ofAll(): Promise<OfAll> {
    const providers = await this.providers.list();
    const enabled = new Set(providers.filter((provider) => provider.enabled).map(({ name }) => name));
    // One that was removed or disabled has no calls that could show its recovery.
    const failing = (await this.health.failing()).filter(({ provider }) => enabled.has(provider));
    const sinks = (await this.sinks.list()).filter((sink) => sink.enabled);
    const webhooks = await this.webhooks.list();
    const policies = (await this.policies.list()).filter((policy) => policy.enabled);
    const unreadable = [...providers, ...policies, ...sinks, ...webhooks].filter(
      ({ secret_state: state }) => state === 'unreadable',
    );
    const failingSinks = sinks.filter(({ state }) => state === 'failing');
    const { reasons } = await this.readiness.now();
    const others = reasons.filter((reason) => failingSinks.length === 0 || !reason.startsWith(SINKS_BEHIND));
    const unpriced = await this.prices.missing();
    const lost = await this.openLosses();
    return {
      missing: enabled.size === 0 ? item('provider_missing', 'critical', [], 1) : null,
      failing: item(
        'provider_failing',
        'critical',
        failing.map(({ provider, since, calls, failures, reason }) => ({
          id: null,
          name: provider,
          since: since.toISOString(),
          detail: `${failures} of ${calls} calls failed in the last minutes${reason === null ? '' : `, mostly ${reason}`}`,
        })),
      ),
      operating: [
        item('system_degraded', 'critical', others.map(named)),
        item('transactions_lost', 'critical', lost.map(lossOf)),
        item(
          'secret_unreadable',
          'critical',
          unreadable.map((one) => ('name' in one ? one : { ...one, name: one.url })),
        ),
        item(
          'sink_failing',
          'critical',
          failingSinks.map(({ id, name, last_error: detail }) => ({ id, name, detail })),
        ),
        item(
          'webhook_failing',
          'warning',
          webhooks.filter(isFailing).map(({ id, url }) => ({ id, name: url })),
        ),
      ],
      unpriced: item(
        'price_missing',
        'warning',
        unpriced.map(({ provider, model }) => named(`${provider}/${model}`)),
      ),
    };
  }
}

function lossOf({ id, noticedAt, gapSeconds, lostEntries, state }: DatabaseRegression): Name {
  const detail = [
    state === 'put_back' ? null : 'waits for your decision',
    lostEntries.length === 0 ? null : `${lostEntries.length} changes to repeat`,
  ];
  return {
    id,
    name: gapSeconds === null ? 'everything' : `${gapSeconds} s`,
    since: noticedAt.toISOString(),
    detail: detail.filter((text) => text !== null).join(', ') || null,
  };
}

interface OfAll {
  missing: AttentionItem | null;
  failing: AttentionItem | null;
  operating: AttentionItem[];
  unpriced: AttentionItem | null;
}
const NOTHING: OfAll = { missing: null, failing: null, operating: [], unpriced: null };

function item(
  kind: AttentionKind,
  level: AttentionItem['level'],
  names: readonly Name[],
  count = names.length,
): AttentionItem {
  const named = kind === 'provider_failing' ? names : names.slice(0, NAMED);
  return {
    kind,
    level,
    count,
    names: named.map(({ id, name, since = null, detail = null }) => ({ id, name, since, detail })),
  };
}

function named(name: string): Name {
  return { id: null, name };
}

function isFailing({ last_delivery: last }: WebhookView): boolean {
  return last?.state === 'failed' || (last?.state === 'retrying' && last.attempts >= FAILED_ATTEMPTS);
}
