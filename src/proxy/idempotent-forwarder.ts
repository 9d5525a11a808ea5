import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { InjectSettings } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { PendingResponses } from '../idempotency/pending-responses.service.js';
import { ClaimsService } from '../idempotency/claims.service.js';
import { readIdempotencyKey, recordId } from '../idempotency/idempotency-key.js';
import { GatewayError } from '../errors/gateway-error.js';
import { Forwarder } from './forwarder.js';
import { Replay } from './replay.js';

/** Makes a call once: the first under its `Idempotency-Key` is forwarded, every other one gets the answer of that one. */
@Injectable()
export class IdempotentCalls {
  constructor(
    private readonly forwarder: Forwarder,
    private readonly claims: ClaimsService,
    private readonly answers: PendingResponses,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * @returns settles at the end of the call's life
   * @throws GatewayError while nothing has been sent to the client
   */
  carry(req: Request, res: Response): Promise<void> {
    const { grant } = req.caller;
    const header = req.headers['idempotency-key'] as string | undefined;
    if (grant.idempotency === 'forward' || header === undefined || req.method !== 'POST')
      return this.forwarder.forward(req, res, null);
    const scope = { keyId: grant.keyId, method: req.method, target: req.originalUrl };
    return this.carryOnce(req, res, recordId(scope, readIdempotencyKey(header)));
  }

  private async carryOnce(req: Request, res: Response, id: Buffer): Promise<void> {
    const claim = await this.claims.claim(id, req.caller.grant.keyId, req.requestId);
    if (claim === null) {
      await this.giveAgain(req, res, id);
      return;
    }
    try {
      await this.forwarder.forward(req, res, claim);
    } finally {
      await claim.close(req.call.begun && req.call.outcome === 'interrupted');
    }
  }

  private async giveAgain(req: Request, res: Response, id: Buffer): Promise<void> {
    let held = 0;
    try {
      await new Replay(req, res, this.env).run(async (gone) => {
        const answer = await this.answers.waitFor(id, gone);
        // Written at once, it stays in memory until the client has taken it.
        if (!this.claims.reserve(answer.body.length))
          throw new GatewayError('overloaded', {
            message: 'Too many answers are being given again right now.',
          });
        held = answer.body.length;
        return answer;
      });
    } finally {
      this.claims.free(held);
    }
  }
}
