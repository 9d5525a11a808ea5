import { usedTokens } from '../request-log/charges.js';
import type { CallTicket, FinishedCall } from '../request-log/finished-call.js';
import type { ResponseUsage } from '../bodies/usage/token-usage.js';
import type { Estimate } from './estimates.js';
import type { Ticket } from './ledger/ticket.js';
import type { WebSocketCharge } from './websocket-charge.js';

/** Settles what a call has reserved. */
export class LimitTicket implements CallTicket {
  /**
   * @param estimate learns from the call; null: there is nothing to learn
   * @param webSocket null: the call is none
   */
  constructor(
    private readonly ticket: Ticket,
    private readonly estimate: Estimate | null,
    private readonly requestBytes: number,
    private readonly webSocket: WebSocketCharge | null,
  ) {}

  get isExhausted(): boolean {
    return this.ticket.isExhausted;
  }

  usedSoFar(usage: ResponseUsage): void {
    this.webSocket?.usedSoFar(usage);
  }

  continue(id: string): void {
    this.ticket.continue(id);
  }

  settle({ row }: FinishedCall): void {
    const tokens = usedTokens(row);
    // What it cost is known once the log writer has computed it with the row.
    this.ticket.settle({ usd: null, tokens });
    if (row.prompt_tokens !== null && row.outcome === 'completed')
      this.estimate?.add(this.requestBytes, row.prompt_tokens, row.completion_tokens ?? 0);
  }

  abandon(): void {
    this.ticket.release();
  }
}
