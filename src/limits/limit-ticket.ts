import { leastCostOf } from '../pricing/least-cost.js';
import type { DatedPrice } from '../pricing/price-resolver.js';
import { startOf } from '../request-log/column-domains.js';
import { usedTokens } from '../request-log/charges.js';
import type { CallTicket, FinishedCall } from '../request-log/finished-call.js';
import type { TokenUsage } from '../tokens/token-usage.js';
import type { Estimate } from './estimates.js';
import type { Ticket } from './ledger/ticket.js';

/** Settles what a call has reserved. */
export class LimitTicket implements CallTicket {
  /**
   * @param estimate learns from the call; null: there is nothing to learn
   * @param price of the model; null: no budget needs it, or it is not known
   */
  constructor(
    private readonly ticket: Ticket,
    private readonly estimate: Estimate | null,
    private readonly requestBytes: number,
    private readonly price: DatedPrice | null,
  ) {}

  get isExhausted(): boolean {
    return this.ticket.isExhausted;
  }

  usedSoFar(usage: TokenUsage): void {
    const { promptTokens: input, completionTokens: output } = usage;
    this.ticket.raise({
      usd: this.price === null ? null : leastCostOf(this.price.price, usage, startOf(this.ticket.id)),
      tokens: input === null && output === null ? null : BigInt((input ?? 0) + (output ?? 0)),
    });
  }

  continue(id: string): void {
    this.ticket.continue(id);
  }

  settle({ row }: FinishedCall): void {
    const tokens = usedTokens(row);
    // What it cost is known once the log writer has computed it with the row.
    this.ticket.settle({ usd: null, tokens: tokens === null ? null : BigInt(tokens) });
    if (row.prompt_tokens !== null && row.outcome === 'completed')
      this.estimate?.add(this.requestBytes, row.prompt_tokens, row.completion_tokens ?? 0);
  }

  abandon(): void {
    this.ticket.release();
  }
}
