import type { ModelPrices, PriceResolver } from '../pricing/price-resolver.js';
import { costOfUsage, modelsOf } from '../pricing/costs/usage-cost.js';
import type { PolicyCall } from '../proxy/policies/policy-call.js';
import { startOf } from '../request-log/column-domains.js';
import type { ResponseUsage } from '../bodies/usage/token-usage.js';
import type { Ticket } from './ledger/ticket.js';

/** Reserves what a WebSocket has used while it is open, at least: its cost may not be known. */
export class WebSocketCharge {
  constructor(
    private readonly call: PolicyCall,
    private readonly ticket: Ticket,
    private readonly prices: PriceResolver,
  ) {}

  /** Reserves it at once, and again when prices that are not in memory are loaded. */
  usedSoFar(usage: ResponseUsage): void {
    this.reserve(usage);
    if (!this.needsUsd) return;
    const models = modelsOf(this.modelOf(usage), usage).filter((model) => this.pricesOf(model) === undefined);
    if (models.length === 0) return;
    const missing = models.map((model) => ({ provider: this.call.provider, model }));
    void this.prices.load(missing).then(() => this.reserve(usage));
  }

  private get needsUsd(): boolean {
    return this.ticket.reservation !== null && this.ticket.reservation.usd !== null;
  }

  private reserve(usage: ResponseUsage): void {
    const tokens = (usage.promptTokens ?? 0) + (usage.completionTokens ?? 0);
    const usd = this.needsUsd ? this.chargeOf(usage) : null;
    this.ticket.raise({ usd, tokens });
    const { reservation } = this.ticket;
    if (reservation === null) return;
    this.call.reserve({
      ...reservation,
      usd,
      tokens: reservation.tokens === null ? null : tokens,
    });
  }

  private chargeOf(usage: ResponseUsage): number {
    const startedAt = startOf(this.ticket.id);
    const { charge } = costOfUsage(this.modelOf(usage), usage, (model) => this.pricesOf(model), startedAt);
    return Number(charge);
  }

  /** As the row of the call has it. */
  private modelOf({ model }: ResponseUsage): string | null {
    return this.call.model ?? model;
  }

  private pricesOf(model: string): ModelPrices | undefined {
    return this.prices.known(this.call.provider, model);
  }
}
