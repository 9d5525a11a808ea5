import { Injectable } from '@nestjs/common';
import { ownCredentials } from '../../auth/credential.js';
import { PendingResponses } from '../../idempotency/pending-responses.service.js';
import { MAX_STORED_BYTES } from '../../idempotency/body-copy.js';
import { ClaimsService } from '../../idempotency/claims.service.js';
import { readIdempotencyKey, recordId } from '../../idempotency/idempotency-key.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { ResponseMemory } from '../../idempotency/response-memory.js';
import type { Call } from '../call.js';
import { Forwarder } from './forwarder.js';
import { StoredResponseSender } from './stored-response-sender.js';

/** Forwards the first call with an `Idempotency-Key`; every other call with that key gets the same response. */
@Injectable()
export class IdempotentForwarder {
  constructor(
    private readonly forwarder: Forwarder,
    private readonly claims: ClaimsService,
    private readonly memory: ResponseMemory,
    private readonly pending: PendingResponses,
    private readonly stored: StoredResponseSender,
  ) {}

  /**
   * @returns settles when the last byte is written or the client's socket is closed
   * @throws GatewayError if nothing was sent to the client yet
   */
  forward(call: Call): Promise<void> {
    const id = recordOf(call);
    return id === null ? this.forwarder.forward(call) : this.forwardOnce(call, id);
  }

  /**
   * Replays the response of an earlier call to one that is rejected, because of what it would cost or for lack of memory.
   *
   * @returns false if there is none: nothing was sent to the client
   */
  async replayRejected(call: Call): Promise<boolean> {
    const id = recordOf(call);
    if (id === null || !(await this.pending.has(id))) return false;
    await this.replay(call, id);
    return true;
  }

  private async forwardOnce(call: Call, id: Buffer): Promise<void> {
    const { grant } = call.caller;
    // Without room for its response, a retry would run the call again. It passes within moments, so the caller can wait.
    if (!this.memory.copies.hasRoom(grant, MAX_STORED_BYTES)) {
      if (await this.replayRejected(call)) return;
      throw new GatewayError('overloaded', {
        message:
          'Too many responses of this gateway key or its team are waiting to be stored. This request has an ' +
          'Idempotency-Key, so it was not forwarded. Try again.',
      });
    }
    const claim = await this.claims.claim(id, grant, call.id);
    if (claim === null) {
      await this.replay(call, id);
      return;
    }
    call.recorder = claim;
    call.record.claim = id.toString('base64url');
    try {
      await this.forwarder.forward(call);
    } finally {
      await this.claims.end(claim, call.record.begun && call.record.outcome === 'interrupted');
    }
  }

  private replay(call: Call, id: Buffer): Promise<void> {
    return this.stored.replay(call, (disconnected) => this.pending.waitFor(id, disconnected));
  }
}

/** The record of a call that is to run once; null for any other call. @throws GatewayError for a malformed key */
function recordOf(call: Call): Buffer | null {
  const { req } = call;
  const { grant } = call.caller;
  const header = req.headers['idempotency-key'] as string | undefined;
  if (grant.idempotency === 'forward' || header === undefined || req.method !== 'POST') return null;
  const credentials = call.targetProviders().some(({ forwardsCredentials }) => forwardsCredentials)
    ? ownCredentials(req.rawHeaders)
    : [];
  const scope = { keyId: grant.keyId, method: req.method, target: req.originalUrl, credentials };
  return recordId(scope, readIdempotencyKey(header));
}
