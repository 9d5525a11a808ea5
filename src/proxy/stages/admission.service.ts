import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { CachingForwarder } from './caching-forwarder.js';
import { IdempotentForwarder } from './idempotent-forwarder.js';
import { CallPolicies } from '../policies/call-policies.js';
import type { CallPolicy } from '../policies/call-policy.js';
import { MOST_SIGNED_BYTES } from '../../providers/credentials/request-signer.js';
import { Gathering, type GatheringLimit, GatheringMemory, OF_POLICIES } from './gathering.js';
import { PolicyCall } from '../policies/policy-call.js';
import { providersOf } from '../routing/routed-call.js';

const NO_POLICIES: readonly CallPolicy[] = [];
const SIGNED: GatheringLimit = {
  bytes: MOST_SIGNED_BYTES,
  message: 'Requests to this provider are signed with their body, which may then have at most 25 MiB.',
};

/** Calls the policies of a key before a call is forwarded, and gathers bodies for them and for routes. */
@Injectable()
export class AdmissionService {
  constructor(
    private readonly policies: CallPolicies,
    private readonly forwarder: CachingForwarder,
    private readonly idempotent: IdempotentForwarder,
    private readonly memory: GatheringMemory,
    @InjectSettings() private readonly env: Settings,
  ) {}

  /**
   * @returns settles when the last byte is written or the client's socket is closed
   * @throws GatewayError or HttpException if nothing was sent to the client yet
   */
  forward(req: Request, res: Response): Promise<void> {
    const policies = this.policies.of(req.caller.grant);
    // Most calls have none: nothing is read or allocated for them.
    if (policies === null && req.routed === undefined && req.provider.signer === null)
      return this.forwarder.forward(req, res, null);
    const asked = policies ?? NO_POLICIES;
    const call = new PolicyCall(req, res);
    const gathering = this.gatheringFor(asked, call, req, res);
    return gathering === null
      ? this.admit(asked, call, req, res)
      : this.admitGathered(gathering, asked, call, req, res);
  }

  /** Null if nobody needs the body. */
  private gatheringFor(
    policies: readonly CallPolicy[],
    call: PolicyCall,
    req: Request,
    res: Response,
  ): Gathering | null {
    const isSigned = providersOf(req).some(({ signer }) => signer !== null);
    const isRequired =
      call.requestBytes !== 0 && (isSigned || policies.some((policy) => policy.needsBody?.(call)));
    if (!isRequired && req.routed?.wantsBody(call) !== true) return null;
    return new Gathering(req, res, this.memory, this.env, isRequired, isSigned ? SIGNED : OF_POLICIES);
  }

  private async admitGathered(
    gathering: Gathering,
    policies: readonly CallPolicy[],
    call: PolicyCall,
    req: Request,
    res: Response,
  ): Promise<void> {
    try {
      const body = await gathering.read();
      call.prefix = gathering.prefix;
      if (body === null && call.prefix === null) return;
      const reading = body === null ? undefined : call.gathered(body);
      if (reading !== undefined) await reading;
      await this.admit(policies, call, req, res);
    } finally {
      gathering.release();
    }
  }

  /** The tickets belong to the record of the call, which is closed whatever happens. */
  private async admit(
    policies: readonly CallPolicy[],
    call: PolicyCall,
    req: Request,
    res: Response,
  ): Promise<void> {
    try {
      for (const policy of policies) {
        const admission = policy.admit(call);
        const ticket = admission instanceof Promise ? await admission : admission;
        if (ticket) req.call.addTicket(ticket);
      }
    } catch (error) {
      if (!isSpent(error) || !(await this.idempotent.replayRejected(req, res, call))) throw error;
      return;
    }
    if (!req.socket.destroyed) await this.forwarder.forward(req, res, call);
  }
}

/** The call was rejected for its cost only: the limits are the last policy. */
function isSpent(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'insufficient_quota';
}
