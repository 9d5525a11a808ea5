import type { Grant } from '../auth/caller.js';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { GatewayError } from '../errors/gateway-error.js';
import { patience, withTimeout } from '../platform/patience.js';
import { type DatedPrice, priceAt, PriceResolver } from '../pricing/price-resolver.js';
import { isAnthropic } from '../providers/inference-endpoints.js';
import { CallPolicies } from '../proxy/policies/call-policies.js';
import { type Admission, CallPolicy } from '../proxy/policies/call-policy.js';
import type { PolicyCall } from '../proxy/policies/policy-call.js';
import type { Reservation } from '../request-log/charges.js';
import { startOf } from '../request-log/column-domains.js';
import { type Estimate, Estimates } from './estimates.js';
import {
  costOf,
  dearerTiers,
  type Expected,
  isForm,
  MAX_TOKENS,
  mostUnits,
  reserve,
  runsInBackground,
  whyUnpriced,
} from './expected.js';
import { LedgerService } from './ledger/ledger.service.js';
import type { CallReservation } from './ledger/ledger.js';
import { RuleCache } from './ledger/rule-cache.js';
import { type RuleSet } from './ledger/rule-set.js';
import type { Ticket } from './ledger/ticket.js';
import { limitRejection } from './limit-rejection.js';
import { LimitTicket } from './limit-ticket.js';
import { rejectUnnamedModel } from './model-policy.js';
import { WebSocketCharge } from './websocket-charge.js';

/** Endpoints that cost nothing: they count tokens or check texts. */
const FREE =
  /\/(?:v1\/messages\/count_tokens|responses\/input_tokens|v1\/moderations|models\/[^/]+:countTokens)$/;
/** A call waits at most this long for a price that is not in memory. */
const PRICE_TIMEOUT = patience('the price of a call', 2_000);
/** The longest output of the models that there are: what `worst` assumes if the request does not limit it. */
const MAX_OUTPUT_TOKENS = 131_072;

const NOTHING: CallReservation = { usd: 0, tokens: 0 };
const LEAST: CallReservation = { usd: 1, tokens: 1 };
const UNPRICED_ENDPOINT =
  'This gateway key has a budget in USD, and requests to this endpoint name no model, so that their cost is unknown. Ask for a budget with "unpriced": "allow".';

const SESSIONS_OFF =
  'This gateway key has a limit for each session, and this gateway reads no sessions (ATTRIBUTION=off). Ask its administrator to remove the limit, or to set ATTRIBUTION to headers or all.';

/** The prices of a target; undefined: they are not in memory. */
type Known = readonly DatedPrice[] | undefined;
type PricedTarget = ReturnType<NonNullable<PolicyCall['routed']>['candidates']>[number];

/** Admits calls within the limits and budgets of their key, its team and their end users. */
@CallPolicy()
export class LimitPolicy implements CallPolicy {
  /** After all others: a call that one of them rejects uses up no limit. */
  readonly order = 100;
  private readonly estimates = new Estimates();

  constructor(
    policies: CallPolicies,
    private readonly rules: RuleCache,
    private readonly ledger: LedgerService,
    private readonly prices: PriceResolver,
    @InjectSettings() private readonly env: Settings,
  ) {
    rules.listen(({ areOthers }) => {
      if (areOthers) policies.changed();
    });
  }

  appliesTo(grant: Grant): boolean {
    return !this.rules.isLoaded || this.setOf(grant) !== null;
  }

  /** Rates of requests are left out: an open WebSocket has taken its one. What changes which calls a rule admits is in its name. */
  rulesOf(grant: Grant): string[] {
    const rules = this.setOf(grant)?.rules ?? [];
    const stopping = rules.filter(({ mode, resource }) => mode === 'block' && resource !== 'requests');
    return stopping.flatMap(({ id, timeZone, resource, unpriced }) => {
      const needsPrice = resource === 'usd' && unpriced === 'reject';
      return needsPrice ? [`${id} ${timeZone}`, `${id} priced`] : [`${id} ${timeZone}`];
    });
  }

  needsBody(call: PolicyCall): boolean {
    const set = this.setOf(call.grant);
    if (set === null) return false;
    const { modelSource } = call;
    if (modelSource !== 'body' && modelSource !== 'path') return false;
    const { needsUsd, needsTokens, namesModels, needsEndUser } = set;
    return needsUsd || needsTokens || namesModels || (needsEndUser && this.env.attribution === 'all');
  }

  /** @throws GatewayError insufficient_quota, rate_limit_exceeded, limits_unavailable, model_not_determined, model_not_priced */
  admit(call: PolicyCall): Admission | Promise<Admission> {
    if (!this.rules.isLoaded) throw new GatewayError('limits_unavailable');
    const all = this.setOf(call.grant);
    const set = all === null ? null : this.narrowed(all, call);
    if (set === null) return;
    if ((!set.needsUsd && !set.needsTokens) || isFree(call)) return this.take(call, set, NOTHING, null);
    const model = modelOf(call, set);
    // What it uses cannot be foreseen, but a spent budget admits nothing more.
    if (model === null) {
      const isUsed = call.method === 'POST' || call.isWebSocket;
      return this.take(call, set, isUsed ? LEAST : NOTHING, null);
    }
    const expected = this.expect(call, set, model);
    const targets = set.needsUsd ? targetsOf(call, model) : [];
    const reserveDearest = (prices: readonly Known[]) => {
      const usd = this.dearest(call, set, expected, targets, prices, model);
      const reservation = { ...reserve(usd, expected), attempts: call.routed?.billableAttempts ?? 1 };
      return this.take(call, set, reservation, expected.estimate);
    };
    const allPrices = () => targets.map((target) => this.pricesOf(target));
    const prices = allPrices();
    if (!prices.includes(undefined)) return reserveDearest(prices);
    const unknown = targets.filter((_, i) => prices[i] === undefined);
    return withTimeout(PRICE_TIMEOUT.ms, this.prices.load(unknown)).then(() => reserveDearest(allPrices()));
  }

  /**
   * What the dearest target costs. Targets without a known cost are excluded if the key has a budget that needs it.
   *
   * @throws GatewayError model_not_priced if none is left, limits_unavailable
   */
  private dearest(
    call: PolicyCall,
    set: RuleSet,
    expected: Expected,
    targets: readonly PricedTarget[],
    pricesOf: readonly Known[],
    model: string,
  ): bigint {
    const startedAt = startOf(call.id);
    let usd = 0n;
    let left = targets.length;
    for (const [i, target] of targets.entries()) {
      const prices = pricesOf[i];
      if (prices === undefined && set.needsPrice && this.env.limitsWithoutDatabase === 'reject')
        throw new GatewayError('limits_unavailable');
      const dated = prices === undefined ? null : priceAt(prices, startedAt);
      const problem = prices === undefined || !set.needsPrice ? null : whyUnpriced(dated, expected);
      if (problem !== null) {
        call.routed?.exclude(target.provider, target.model, model);
        if (--left === 0) throw problem;
        continue;
      }
      // Without a known price, its cost is computed with its row, and charged.
      const cost = dated === null ? 1n : costOf(dated, expected, startedAt);
      if (cost > usd) usd = cost;
    }
    return usd;
  }

  private pricesOf({ provider, model }: PricedTarget): Known {
    return isStorable(model) ? this.prices.known(provider, model) : [];
  }

  private take(
    call: PolicyCall,
    set: RuleSet,
    reservation: CallReservation,
    estimate: Estimate | null,
  ): Admission | Promise<Admission> {
    const counted = {
      endUser: set.needsEndUser ? this.ledger.subjectOf(call.attribution?.endUser ?? null) : '',
      session: set.needsSession ? this.ledger.subjectOfSession(call.session!) : null,
      isModelKnown: !set.namesModels || modelOfFilters(set, call) !== null,
    };
    try {
      const taken = call.isWebSocket ? atLeast(LEAST, reservation) : reservation;
      const ticket = this.ledger.admit(set, call.id, counted, taken, call);
      if (!(ticket instanceof Promise)) return this.ticketOf(call, ticket, estimate);
      return ticket.then(
        (late) => this.ticketOf(call, late, estimate),
        (error: unknown) => {
          if (call.disconnected.aborted) return null;
          throw limitRejection(error, isAnthropic(call.endpoint), this.env.budgetHelp);
        },
      );
    } catch (error) {
      throw limitRejection(error, isAnthropic(call.endpoint), this.env.budgetHelp);
    }
  }

  private expect(call: PolicyCall, set: RuleSet, model: string): Expected {
    const bytes = call.requestBytes ?? 0;
    const estimate = this.estimates.of(call.grant.keyId, model, isForm(call.headers));
    const declared = call.maxOutputTokens;
    const most = declared !== null && declared > 0 ? declared : MAX_OUTPUT_TOKENS;
    // What a call in the background uses is never known: it is charged what it reserves.
    const isCharged = set.needsUsd || set.chargesTokens;
    const isMost = set.reservesWorst || (isCharged && runsInBackground(call));
    const output = isMost ? most : Math.min(most, estimate.output);
    return {
      estimate,
      input: isMost ? bytes : estimate.input(bytes),
      output: Math.min(output * call.choices, MAX_TOKENS),
      isMost,
      tiers: set.needsPrice ? dearerTiers(call) : [],
      units: mostUnits(call, bytes),
    };
  }

  private ticketOf(call: PolicyCall, ticket: Ticket, estimate: Estimate | null): LimitTicket {
    const { reservation } = ticket;
    call.reserve(reservation && withoutLeast(reservation));
    // What a whole connection uses says nothing of a single request.
    const learns = call.isWebSocket ? null : estimate;
    const webSocket = call.isWebSocket ? new WebSocketCharge(call, ticket, this.prices) : null;
    return new LimitTicket(ticket, learns, call.requestBytes ?? 0, webSocket);
  }

  /**
   * The rules that count a call. Which session it is of is not known with ATTRIBUTION=off: limits that were set before are not
   * taken for none.
   *
   * @throws GatewayError model_not_determined, limits_unavailable
   */
  private narrowed(all: RuleSet, call: PolicyCall): RuleSet | null {
    if (!all.needsSession || call.session !== null) return countingRules(all, call);
    if (this.env.attribution === 'off' && countingRules(all, call)?.blocksSessions === true)
      throw new GatewayError('limits_unavailable', { message: SESSIONS_OFF });
    return all.withoutSession && countingRules(all.withoutSession, call);
  }

  private setOf({ teamId, keyId }: Grant): RuleSet | null {
    return this.rules.of(teamId, keyId);
  }
}

/** Requests that only read something cost nothing, but for WebSockets. */
function isFree(call: PolicyCall): boolean {
  const { modelSource } = call;
  if (call.isOverridden) return false;
  if (modelSource === 'list' || (modelSource === 'path' && call.method === 'GET')) return true;
  return modelSource !== 'none' && FREE.test(call.endpoint);
}

/**
 * The model of a call; null if no budget needs it.
 *
 * @throws GatewayError model_not_determined, model_not_priced
 */
function modelOf(call: PolicyCall, set: RuleSet): string | null {
  if (call.modelSource === 'none') {
    if (!set.needsPrice) return null;
    rejectUnnamedModel(call);
    throw new GatewayError('model_not_priced', { message: UNPRICED_ENDPOINT });
  }
  return set.blocksUsd ? call.requireModel() : (call.model ?? '');
}

/** Those of the rules that count a call, by its provider and model. @throws GatewayError model_not_determined */
function countingRules(all: RuleSet, call: PolicyCall): RuleSet | null {
  if (!all.isFiltered) return all;
  const model = all.namesModels ? modelOfFilters(all, call) : null;
  return all.for(call.routed?.possible(model) ?? [{ provider: call.provider, model }]);
}

/**
 * The model of a call for the rules that count some models only; null: it is not known for certain, and they all count it.
 * An open WebSocket may use any.
 *
 * @throws GatewayError model_not_determined
 */
function modelOfFilters(set: RuleSet, call: PolicyCall): string | null {
  if (call.isWebSocket) return null;
  const isNamed = call.modelSource !== 'none' && call.modelSource !== 'list' && !isFree(call);
  return set.blocksModels && isNamed ? call.requireModel() : call.model;
}

/** The providers to which a call may go, each with the name that the model has there. */
function targetsOf(call: PolicyCall, model: string): readonly PricedTarget[] {
  return call.routed?.candidates(model) ?? [{ provider: call.provider, model }];
}

/** A name that Postgres cannot store has no price. */
function isStorable(model: string): boolean {
  return model.isWellFormed() && !model.includes('\0');
}

/** The least is reserved, and not charged. */
function withoutLeast(reservation: Reservation): Reservation {
  const { usd, tokens } = reservation;
  if (usd !== LEAST.usd && tokens !== LEAST.tokens) return reservation;
  return { ...reservation, usd: usd === LEAST.usd ? 0 : usd, tokens: tokens === LEAST.tokens ? 0 : tokens };
}

/** What uses nothing yet may go on for hours: its budgets close it once they are spent. */
function atLeast(least: CallReservation, { usd, tokens }: CallReservation): CallReservation {
  return { usd: Math.max(usd, least.usd), tokens: Math.max(tokens, least.tokens) };
}
