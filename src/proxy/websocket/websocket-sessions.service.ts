import { Injectable, Logger } from '@nestjs/common';
import type { Grant } from '../../auth/caller.js';
import { KeyLookupService } from '../../auth/key-lookup.service.js';
import { describeError } from '../../errors/describe-error.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { isOpenTo } from '../../providers/provider-access.js';
import { ProvidersService } from '../../providers/providers.service.js';
import type { Call } from '../call.js';
import { RequestLogService } from '../../request-log/request-log.service.js';
import { CallPolicies } from '../policies/call-policies.js';
import { UpstreamPools } from '../upstream/upstream-pools.js';
import type { ConnectionUsage } from './connection-usage.js';
import { GOING_AWAY, INTERNAL_ERROR, POLICY_VIOLATION, type WebSocketSession } from './websocket-session.js';

/** An open WebSocket. */
export interface OpenWebSocket {
  readonly call: Call;
  readonly usage: ConnectionUsage;
  readonly session: WebSocketSession;
}

interface Watched extends OpenWebSocket {
  /** What its key allows, as it was last looked up. */
  grant: Grant;
  /** Responses whose usage was journalled and reserved. */
  counted: number;
  countedAt: number;
  /** Version of the key cache at which the key was found valid. */
  keyVersion: number;
  checking: boolean;
  /** Version of the call policies at which its rules were found to be those under which it was admitted. */
  rulesVersion: number;
}

/** One key leaves most connections of a process, and most of its memory, to the others. */
const SHARE_OF_KEY = 4;
const MAX_OF_KEY = 4_096;
const TICK_MS = 250;
/** At a shutdown, a WebSocket is closed once its provider has sent nothing for so long: no response is under way. */
const QUIET_MS = 1_000;
/** The rest is closed so long before the grace ends. */
const BEFORE_END_MS = 1_000;

/** Watches the open WebSockets: their keys, what they use, and the shutdown. */
@Injectable()
export class WebSocketSessions {
  /** How often the usage so far is journalled and reserved. */
  usageEveryMs = 10_000;
  /** WebSockets that one key may have open in this process. */
  mostOfKey: number;
  private readonly byKey = new Map<string, number>();
  private readonly logger = new Logger('WebSockets');
  private readonly open = new Set<Watched>();
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly keys: KeyLookupService,
    private readonly providers: ProvidersService,
    private readonly log: RequestLogService,
    private readonly policies: CallPolicies,
    pools: UpstreamPools,
  ) {
    this.mostOfKey = Math.min(MAX_OF_KEY, Math.ceil(pools.most / SHARE_OF_KEY));
  }

  /**
   * Runs a handshake and what follows it, and counts it as a WebSocket of its key until it has ended.
   *
   * @throws GatewayError overloaded if the key may not have one more
   */
  async run(keyId: string, work: () => Promise<unknown>): Promise<void> {
    const count = this.byKey.get(keyId) ?? 0;
    if (count >= this.mostOfKey)
      throw new GatewayError('overloaded', {
        message: `This gateway key has ${count} WebSockets open here, and may have no more. Close some, or use another key for a part of the clients.`,
      });
    this.byKey.set(keyId, count + 1);
    try {
      await work();
    } finally {
      const left = this.byKey.get(keyId)! - 1;
      if (left === 0) this.byKey.delete(keyId);
      else this.byKey.set(keyId, left);
    }
  }

  /** Open WebSockets. */
  get count(): number {
    return this.open.size;
  }

  /** @returns to be called when it has ended */
  add(socket: OpenWebSocket): () => void {
    const watched: Watched = {
      ...socket,
      grant: socket.call.caller.grant,
      counted: 0,
      countedAt: performance.now(),
      // Unknown: the key may have changed while the provider was asked.
      keyVersion: -1,
      checking: false,
      rulesVersion: -1,
    };
    this.open.add(watched);
    this.timer ??= setInterval(() => this.tick(), TICK_MS).unref();
    return () => {
      this.open.delete(watched);
      if (this.open.size > 0 || this.timer === null) return;
      clearInterval(this.timer);
      this.timer = null;
    };
  }

  /**
   * Closes WebSockets at a shutdown: those on which no response is under way, and all of them shortly before the end.
   *
   * @param deadline monotonic ms
   */
  closeQuiet(deadline: number): void {
    const now = performance.now();
    for (const { session } of this.open) {
      if (now < deadline - BEFORE_END_MS && now - session.providerSentAt < QUIET_MS) continue;
      session.close(GOING_AWAY, 'the gateway is shutting down', 'shutting_down');
    }
  }

  private tick(): void {
    const now = performance.now();
    for (const watched of this.open) {
      this.checkKey(watched);
      this.checkRules(watched);
      this.checkProvider(watched);
      if (now - watched.countedAt >= this.usageEveryMs) this.countUsage(watched, now);
      const { call, usage, session } = watched;
      if (call.record.isExhausted)
        session.close(POLICY_VIOLATION, 'the budget is spent', 'insufficient_quota');
      if (!usage.isKnown && call.record.reservation !== null)
        session.close(POLICY_VIOLATION, 'its usage cannot be read', 'upstream_invalid_response');
    }
  }

  private checkProvider({ call, session, grant }: Watched): void {
    const provider = this.providers.find(call.provider.name);
    if (provider === null)
      session.close(POLICY_VIOLATION, 'its provider is disabled or was removed', 'provider_not_found');
    else if (!isOpenTo(provider, grant.teamId))
      session.close(POLICY_VIOLATION, 'its provider is for another team', 'provider_not_allowed');
  }

  private countUsage(watched: Watched, now: number): void {
    const { call, usage } = watched;
    watched.countedAt = now;
    if (usage.responses === watched.counted) return;
    watched.counted = usage.responses;
    this.log.journalUsage(call.record, usage.total);
    call.record.reportUsage(usage.counted);
  }

  /** Looks the key up again after any change of keys, and when it expires. */
  private checkKey(watched: Watched): void {
    const { session } = watched;
    const { version } = this.keys;
    const isExpired = watched.grant.expiresAt <= Date.now();
    if (watched.checking || (watched.keyVersion === version && !isExpired)) return;
    watched.checking = true;
    void this.findGrant(watched)
      .then((grant) => {
        if (grant === null) revoke(session);
        else {
          watched.grant = grant;
          watched.keyVersion = version;
        }
      })
      .catch((error: unknown) => {
        // Without Postgres, what was allowed goes on; it is tried again.
        this.logger.debug(`The key of a WebSocket could not be confirmed: ${describeError(error)}`);
        if (isExpired) revoke(session);
      })
      .finally(() => (watched.checking = false));
  }

  /** A rule that is new for its key holds for what the client opens next, which is admitted under it. */
  private checkRules(watched: Watched): void {
    const { version } = this.policies;
    if (watched.rulesVersion === version) return;
    const { webSocket } = watched.call;
    const isNew = (rule: string) => !webSocket!.rules.includes(rule);
    try {
      if (this.policies.rulesOf(watched.grant).some(isNew))
        watched.session.close(
          POLICY_VIOLATION,
          'the limits of the gateway key have changed',
          'rate_limit_exceeded',
        );
    } catch (error) {
      // What cannot be checked is not allowed to go on.
      this.logger.error(`The rules of a WebSocket could not be checked: ${describeError(error)}`);
      watched.session.close(INTERNAL_ERROR, 'its rules could not be checked', 'internal_error');
    }
    watched.rulesVersion = version;
  }

  /** What the key allows; null if a WebSocket like this one would not be opened any more. */
  private async findGrant({ call }: Watched): Promise<Grant | null> {
    const { caller, provider, req } = call;
    const grant = await this.keys.find(caller.key, req);
    const isAllowed =
      grant?.websockets === true &&
      (grant.providers === null || grant.providers.includes(provider.name)) &&
      // Its model was checked against the lists when it was opened.
      JSON.stringify(grant.models) === JSON.stringify(caller.grant.models);
    return isAllowed ? grant : null;
  }
}

function revoke(session: WebSocketSession): void {
  session.close(POLICY_VIOLATION, 'the gateway key no longer allows it', 'invalid_api_key');
}
