import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ownCredentials } from '../../auth/credential.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { PendingResponses } from '../../idempotency/pending-responses.service.js';
import { LARGEST_STORED_BYTES } from '../../idempotency/body-copy.js';
import { ClaimsService } from '../../idempotency/claims.service.js';
import { readIdempotencyKey, recordId } from '../../idempotency/idempotency-key.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { ResponseMemory } from '../../idempotency/response-memory.js';
import type { ResponseRecorder } from '../../idempotency/response-recorder.js';
import { RequestLogService } from '../../request-log/request-log.service.js';
import { providersOf } from '../routing/routed-call.js';
import { Forwarder } from './forwarder.js';
import type { PolicyCall } from '../policies/policy-call.js';
import { Replay } from './replay.js';

/** Forwards the first call with an `Idempotency-Key`; every other call with that key gets the same response. */
@Injectable()
export class IdempotentForwarder {
  constructor(
    private readonly forwarder: Forwarder,
    private readonly claims: ClaimsService,
    private readonly memory: ResponseMemory,
    private readonly pending: PendingResponses,
    private readonly log: RequestLogService,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * @param admitted what policies made of the call; null if its key has none
   * @param recorder stores the response, unless the call is idempotent; null: it is not stored
   * @returns settles when the last byte is written or the client's socket is closed
   * @throws GatewayError if nothing was sent to the client yet
   */
  forward(
    req: Request,
    res: Response,
    admitted: PolicyCall | null,
    recorder: ResponseRecorder | null,
  ): Promise<void> {
    const id = recordOf(req);
    return id === null
      ? this.forwarder.forward(req, res, recorder, admitted)
      : this.forwardOnce(req, res, id, admitted);
  }

  /**
   * Replays the response of an earlier call to one that is rejected, because of what it would cost or for lack of memory.
   *
   * @returns false if there is none: nothing was sent to the client
   */
  async replayRejected(req: Request, res: Response, rejected: PolicyCall | null): Promise<boolean> {
    const id = recordOf(req);
    if (id === null || !(await this.pending.has(id))) return false;
    await this.replay(req, res, id, rejected);
    return true;
  }

  private async forwardOnce(
    req: Request,
    res: Response,
    id: Buffer,
    admitted: PolicyCall | null,
  ): Promise<void> {
    const { grant } = req.caller;
    // Without room for its response, a retry would run the call again. It passes within moments, so the caller can wait.
    if (!this.memory.copies.hasRoom(grant, LARGEST_STORED_BYTES)) {
      if (await this.replayRejected(req, res, admitted)) return;
      throw new GatewayError('overloaded', {
        message:
          'Too many responses of this gateway key or its team are waiting to be stored. This request has an ' +
          'Idempotency-Key, so it was not forwarded. Try again.',
      });
    }
    const claim = await this.claims.claim(id, grant, req.requestId);
    if (claim === null) {
      await this.replay(req, res, id, admitted);
      return;
    }
    try {
      await this.forwarder.forward(req, res, claim, admitted);
    } finally {
      await this.claims.end(claim, req.call.begun && req.call.outcome === 'interrupted');
    }
  }

  private async replay(req: Request, res: Response, id: Buffer, call: PolicyCall | null): Promise<void> {
    const { grant } = req.caller;
    let held = 0;
    try {
      await new Replay(req, res, this.log, this.env, call?.body ?? null).run(async (disconnected) => {
        const stored = await this.pending.waitFor(id, disconnected);
        // The response is written at once, and stays in memory until the client has read it.
        if (!this.memory.replays.reserve(grant, stored.body.length))
          throw new GatewayError('overloaded', {
            message:
              'Too many stored responses are being sent to clients of this gateway key or its team. Read those, and try again.',
          });
        held = stored.body.length;
        return stored;
      });
    } finally {
      this.memory.replays.free(grant, held);
    }
  }
}

/** The record of a call that is to run once; null for any other call. @throws GatewayError for a malformed key */
function recordOf(req: Request): Buffer | null {
  const { grant } = req.caller;
  const header = req.headers['idempotency-key'] as string | undefined;
  if (grant.idempotency === 'forward' || header === undefined || req.method !== 'POST') return null;
  const credentials = providersOf(req).some(({ forwardsCredentials }) => forwardsCredentials)
    ? ownCredentials(req.rawHeaders)
    : [];
  const scope = { keyId: grant.keyId, method: req.method, target: req.originalUrl, credentials };
  return recordId(scope, readIdempotencyKey(header));
}
