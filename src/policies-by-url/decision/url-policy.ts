import type { Grant } from '../../auth/caller.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { CallPolicies } from '../../proxy/policies/call-policies.js';
import { CallPolicy } from '../../proxy/policies/call-policy.js';
import type { PolicyCall } from '../../proxy/policies/policy-call.js';
import { type CallFacts, callHeader, digestOf, factsOf } from './call-facts.js';
import { DecisionCache } from './decision-cache.js';
import { type Decision, decisionOf } from './decision.js';
import { POLICY_REJECTED, POLICY_UNAVAILABLE } from './errors.js';
import { DecisionLog, PolicyFailure, type Question, type Rule, Rules } from './rule.js';
import { Slots } from './slots.js';

/** Of each policy, in this process. */
export const MOST_AT_ONCE = 64;

const NO_WEBSOCKETS =
  'A policy of this gateway decides by the bodies of requests, which WebSockets have not. Send plain HTTP requests.';
const TOO_MANY = 'Too many requests wait for a policy of this gateway. Try again.';

/** Asks the policies by URL whether a call is forwarded, and does what they say. */
@CallPolicy()
export class UrlPolicy implements CallPolicy {
  /** Before the limits, of which a rejected call uses up nothing. */
  readonly order = 50;
  private readonly cache = new DecisionCache();
  /** By the ID of the policy, while it is asked. */
  private readonly slots = new Map<string, Slots>();

  constructor(
    policies: CallPolicies,
    private readonly rules: Rules,
    private readonly log: DecisionLog,
  ) {
    rules.onChange(() => policies.changed());
  }

  /** Until the policies were read, each key may have one. */
  appliesTo(grant: Grant): boolean {
    return this.rules.all === null || this.rulesFor(grant).length > 0;
  }

  /** What changes which WebSockets a policy admits is in its name. */
  rulesOf(grant: Grant): string[] {
    return this.rulesFor(grant).map(({ id, send, models }) => `${id} ${send} ${models?.join(' ') ?? ''}`);
  }

  /** The model is in the body, too. */
  needsBody(call: PolicyCall): boolean {
    return this.rulesFor(call.grant).some(({ send }) => send === 'body' || call.modelSource === 'body');
  }

  /** @throws GatewayError policy_rejected, policy_unavailable, policy_call_too_long, overloaded, upgrade_required */
  admit(call: PolicyCall): Promise<void> | undefined {
    if (this.rules.all === null) throw new GatewayError(POLICY_UNAVAILABLE);
    const rules = this.rulesFor(call.grant).filter((rule) => concerns(rule, call));
    return rules.length === 0 ? undefined : this.askAll(rules, call);
  }

  /** How many calls ask each policy, and how many wait to do so. */
  *load(): Generator<readonly [id: string, asking: number, waiting: number]> {
    for (const [id, { taken, waiting }] of this.slots) yield [id, taken, waiting];
  }

  private rulesFor(grant: Grant): Rule[] {
    return (this.rules.all ?? []).filter((rule) => rule.concerns(grant));
  }

  private async askAll(rules: readonly Rule[], call: PolicyCall): Promise<void> {
    // No target of a route may read another model than the one that was decided about.
    if (call.model !== null) call.requireModel();
    const { disconnected } = call;
    for (const rule of rules) {
      const decision = await this.ask(rule, call, disconnected);
      if (disconnected.aborted) return;
      if (decision !== null) obey(rule, decision, call);
    }
  }

  /** @returns null if the call is admitted without a decision, or its client has disconnected */
  private async ask(rule: Rule, call: PolicyCall, disconnected: AbortSignal): Promise<Decision | null> {
    if (rule.send === 'body' && call.isWebSocket)
      throw new GatewayError('upgrade_required', { message: NO_WEBSOCKETS });
    const body = rule.send === 'body' ? call.body : null;
    // The policy began to get bodies when this one was already awaited, and nobody else needed all of it.
    if (rule.send === 'body' && body === null && call.requestBytes !== 0)
      throw new GatewayError(POLICY_UNAVAILABLE);
    const sent = { body, headers: headersOf(call, body) };
    const facts = factsOf(call);
    if (rule.cacheSeconds === 0) return this.send(rule, call, facts, sent, disconnected);
    const key = digestOf(rule, facts, sent);
    const known = this.cache.get(key);
    if (known !== null) {
      this.log.decided(rule, known.allow, null);
      return known;
    }
    const decision = await this.send(rule, call, facts, sent, disconnected);
    if (decision !== null) this.cache.set(key, decision, rule.cacheSeconds);
    return decision;
  }

  private async send(
    rule: Rule,
    call: PolicyCall,
    facts: CallFacts,
    sent: Pick<Question, 'body' | 'headers'>,
    disconnected: AbortSignal,
  ): Promise<Decision | null> {
    const question = { id: call.id, call: callHeader(facts), ...sent };
    const slots = this.slotsOf(rule);
    if (!(await slots.take(rule.timeoutMs, disconnected))) {
      if (disconnected.aborted) return null;
      this.log.overloaded(rule);
      throw new GatewayError('overloaded', { message: TOO_MANY });
    }
    const startedAt = performance.now();
    try {
      const decision = decisionOf(await rule.ask(question, disconnected));
      this.log.decided(rule, decision.allow, performance.now() - startedAt);
      return decision;
    } catch (error) {
      if (disconnected.aborted) return null;
      if (!(error instanceof PolicyFailure)) throw error;
      this.log.failed(rule, error.code, performance.now() - startedAt);
      if (rule.onFailure === 'allow') return null;
      throw new GatewayError(POLICY_UNAVAILABLE, { cause: error });
    } finally {
      slots.release();
      if (slots.taken === 0) this.slots.delete(rule.id);
    }
  }

  private slotsOf({ id }: Rule): Slots {
    const slots = this.slots.get(id) ?? new Slots(MOST_AT_ONCE);
    this.slots.set(id, slots);
    return slots;
  }
}

/** A model that is not known for certain may be any. */
function concerns(rule: Rule, call: PolicyCall): boolean {
  if (rule.models === null || call.model === null) return true;
  return rule.concernsModel(call.requireModel());
}

/** @throws GatewayError policy_rejected */
function obey({ name }: Rule, decision: Decision, call: PolicyCall): void {
  if (decision.allow) {
    if (decision.tags !== undefined) call.addTags(decision.tags);
    return;
  }
  const { code, message } = decision;
  throw new GatewayError(POLICY_REJECTED, {
    code,
    message,
    headers: ['x-gateway-policy', `${name} ${code}`],
  });
}

/** What the bytes of the body are. */
function headersOf({ headers }: PolicyCall, body: Buffer | null): Record<string, string> {
  if (body === null) return {};
  const { 'content-type': type, 'content-encoding': encoding } = headers;
  return {
    ...(type !== undefined && { 'content-type': type }),
    ...(encoding !== undefined && { 'content-encoding': encoding }),
  };
}
