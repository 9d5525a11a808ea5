import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { MAX_SIGNED_BYTES } from '../../providers/credentials/request-signer.js';
import type { Call } from '../call.js';
import { CallPolicies } from '../policies/call-policies.js';
import type { CallPolicy } from '../policies/call-policy.js';
import { PolicyCall } from '../policies/policy-call.js';
import { CachingForwarder } from './caching-forwarder.js';
import { Gathering, type GatheringLimit, GatheringMemory, OF_POLICIES } from './gathering.js';
import { IdempotentForwarder } from './idempotent-forwarder.js';

const NO_POLICIES: readonly CallPolicy[] = [];
const SIGNED: GatheringLimit = {
  bytes: MAX_SIGNED_BYTES,
  message: 'Requests to this provider are signed with their body, which may then have at most 25 MiB.',
};

/** Calls the policies of a key before a call is forwarded, and gathers bodies for them, for routes and for the response cache. */
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
  forward(call: Call): Promise<void> {
    const { grant } = call.caller;
    const policies = this.policies.of(grant);
    // Most calls have none: nothing is read or allocated for them.
    if (policies === null && call.routed === null && !call.provider.signs && grant.cache === null)
      return this.forwarder.forward(call);
    const asked = policies ?? NO_POLICIES;
    const admitted = new PolicyCall(call.req);
    call.admitted = admitted;
    const gathering = this.gatheringFor(call, admitted, asked);
    return gathering === null
      ? this.admit(call, admitted, asked)
      : this.admitGathered(call, admitted, asked, gathering);
  }

  /** Null if nobody needs the body. */
  private gatheringFor(call: Call, admitted: PolicyCall, policies: readonly CallPolicy[]): Gathering | null {
    const isSigned = call.targetProviders().some(({ signs }) => signs);
    const isRequired =
      admitted.requestBytes !== 0 &&
      (isSigned ||
        this.forwarder.needsBody(admitted) ||
        policies.some((policy) => policy.needsBody?.(admitted)));
    if (!isRequired && call.routed?.wantsBody(admitted) !== true) return null;
    return new Gathering(call, this.memory, this.env, isSigned ? SIGNED : OF_POLICIES, isRequired);
  }

  private async admitGathered(
    call: Call,
    admitted: PolicyCall,
    policies: readonly CallPolicy[],
    gathering: Gathering,
  ): Promise<void> {
    try {
      const body = await gathering.read();
      admitted.prefix = gathering.prefix;
      if (body === null && admitted.prefix === null) return;
      const reading = body === null ? undefined : admitted.gathered(body);
      if (reading !== undefined) await reading;
      await this.admit(call, admitted, policies);
    } finally {
      gathering.release();
    }
  }

  /** The tickets belong to the record of the call, which is closed whatever happens. */
  private async admit(call: Call, admitted: PolicyCall, policies: readonly CallPolicy[]): Promise<void> {
    for (const policy of policies) {
      try {
        const admission = policy.admit(admitted);
        const ticket = admission instanceof Promise ? await admission : admission;
        if (ticket) call.record.addTicket(ticket);
      } catch (error) {
        // A stored response costs nothing. But a policy that was not asked might reject the call for something else.
        const isForCostOnly = isSpent(error) && policy === policies.at(-1);
        if (!isForCostOnly || !(await this.idempotent.replayRejected(call))) throw error;
        return;
      }
    }
    if (!call.req.socket.destroyed) await this.forwarder.forward(call);
  }
}

function isSpent(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'insufficient_quota';
}
