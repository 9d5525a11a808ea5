import { HttpService } from '@nestjs/axios';
import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { lastValueFrom } from 'rxjs';
import { KeyLookupService } from '../../auth/key-lookup.service.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import type { ResponseRecorder } from '../../idempotency/response-recorder.js';
import { withAccessToken } from '../../providers/provider.js';
import { RequestLogService } from '../../request-log/request-log.service.js';
import { Exchange } from '../exchange/exchange.js';
import { sendContinue } from '../http/expect-continue.js';
import { WebSocketExchange } from '../websocket/websocket-exchange.js';
import { WebSocketSessions } from '../websocket/websocket-sessions.service.js';
import type { PolicyCall } from '../policies/policy-call.js';
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
    private readonly log: RequestLogService,
    private readonly webSockets: WebSocketSessions,
    private readonly keys: KeyLookupService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * @param claim stores the response for retries or the response cache; null if it is not stored
   * @param admitted what policies made of the call; null if its key has none
   * @returns settles when the last byte is written or the client's socket is closed
   * @throws GatewayError if nothing was sent to the client yet
   */
  async forward(
    req: Request,
    res: Response,
    claim: ResponseRecorder | null,
    admitted: PolicyCall | null,
  ): Promise<void> {
    // A body that policies gathered has arrived already.
    if (req.headers.expect !== undefined && !admitted?.body && !admitted?.prefix) sendContinue(req, res);
    if (req.routed !== undefined) return this.forwardRouted(req.routed, req, res, claim, admitted);
    const { tokens } = req.provider;
    const provider = tokens === null ? req.provider : await withAccessToken(req.provider, tokens);
    const { log, env, keys, webSockets } = this;
    if (req.webSocket === undefined) {
      await this.send(new Exchange(req, res, provider, req.call, log, claim, env, admitted, keys));
      return;
    }
    await webSockets.run(req.caller.grant.keyId, () =>
      this.send(new WebSocketExchange(req, res, provider, log, env, admitted, keys, webSockets)),
    );
  }

  /** Forwards a call to one target after the other, until one has a response for the client. */
  private async forwardRouted(
    routed: RoutedCall,
    req: Request,
    res: Response,
    claim: ResponseRecorder | null,
    admitted: PolicyCall | null,
  ): Promise<void> {
    routed.begin(admitted);
    let attempt = new Attempt(
      req,
      res,
      req.call,
      this.log,
      claim,
      this.env,
      admitted,
      this.keys,
      routed,
      null,
    );
    for (;;) {
      await this.send(attempt);
      if (!attempt.isRetried) return;
      routed.advance();
      const call = this.log.openNext(req.call, req.provider.name, req.provider.origin);
      routed.describe(call);
      attempt = new Attempt(req, res, call, this.log, claim, this.env, admitted, this.keys, routed, attempt);
    }
  }

  private send(exchange: Exchange): Promise<unknown> {
    const { req } = exchange;
    const request: UpstreamRequest = { method: req.method, url: req.target.upstreamPath, data: exchange };
    return lastValueFrom(this.http.request(request), NOTHING);
  }
}
