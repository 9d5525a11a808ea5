import { HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import { lastValueFrom } from 'rxjs';
import { withAccessToken } from '../../providers/provider.js';
import type { Call } from '../call.js';
import { Exchange } from '../exchange/exchange.js';
import { ExchangeServices } from '../exchange/exchange-services.js';
import { WebSocketExchange } from '../websocket/websocket-exchange.js';
import { WebSocketSessions } from '../websocket/websocket-sessions.service.js';
import { Attempt } from '../routing/attempt.js';
import type { RoutedCall } from '../routing/routed-call.js';
import type { UpstreamRequest } from '../upstream/upstream-http.service.js';

/** The responses have gone to the clients. */
const NOTHING = { defaultValue: undefined };

/** Forwards a call to its provider and streams the response back. */
@Injectable()
export class Forwarder {
  constructor(
    private readonly http: HttpService,
    private readonly services: ExchangeServices,
    private readonly webSockets: WebSocketSessions,
  ) {}

  /**
   * @returns settles when the last byte is written or the client's socket is closed
   * @throws GatewayError if nothing was sent to the client yet
   */
  async forward(call: Call): Promise<void> {
    const { services, webSockets } = this;
    const { admitted } = call;
    // A body that was gathered has arrived already.
    if (!admitted?.body && !admitted?.prefix) call.sendContinue();
    if (call.routed !== null) return this.forwardRouted(call, call.routed);
    const { tokens } = call.provider;
    if (tokens !== null) call.provider = await withAccessToken(call.provider, tokens);
    if (call.webSocket === null) {
      await this.send(new Exchange(call, services));
      return;
    }
    await webSockets.run(call.caller.grant.keyId, () =>
      this.send(new WebSocketExchange(call, services, webSockets)),
    );
  }

  /** Forwards a call to one target after the other, until one has a response for the client. */
  private async forwardRouted(call: Call, routed: RoutedCall): Promise<void> {
    routed.begin();
    let attempt = new Attempt(call, this.services);
    for (;;) {
      await this.send(attempt);
      if (!attempt.isRetried) return;
      attempt = attempt.next();
    }
  }

  private send(exchange: Exchange): Promise<unknown> {
    const { req } = exchange;
    const request: UpstreamRequest = { method: req.method, url: req.target.upstreamPath, data: exchange };
    return lastValueFrom(this.http.request(request), NOTHING);
  }
}
