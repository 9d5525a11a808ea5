import type { Request } from 'express';
import { allowsEndpoint, ruleAt } from '../../auth/endpoint-rule.js';
import { modelFromPath } from '../../bodies/path-model.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { COMMON_POSTS, isAnthropic } from '../../providers/inference-endpoints.js';
import type { Provider } from '../../providers/provider.js';
import { isOpenTo } from '../../providers/provider-access.js';
import type { ProvidersService } from '../../providers/providers.service.js';
import type { CallRecord } from '../../request-log/call-record.js';
import { chooseTarget, hashOf, type Route, type Target } from '../../routes/route.js';
import type { PolicyCall } from '../policies/policy-call.js';
import { withoutBasePath } from './base-path.js';
import { mayHaveCredential } from './credential-target.js';
import type { KeptResponse } from './kept-response.js';

/** A target that a call may be sent to. */
interface Choice {
  readonly target: Target;
  readonly provider: Provider;
  /** The body with the target's own name of the model; null if it is sent as it is. */
  readonly body: Buffer | null;
  readonly model: string | null;
}

/** A call that uses a route: which of its targets has the call, and which ones are left. */
export class RoutedCall {
  /** The last response that was not delivered. */
  kept: KeptResponse | null = null;
  private readonly endpoint: string;
  private readonly upstreamPath: string;
  private attempts = 0;
  /** A bit for each target that had the call or must not have it. */
  private excluded = 0;
  private affinity = 0;
  private choice!: Choice;
  private following: Choice | null = null;
  /** The token with which the result of the present target is reported to its health; -1 once it was. */
  private begun = -1;
  private admitted: PolicyCall | null = null;
  /** What policies send in place of the body, and what they altered. */
  private replacement: Buffer | null = null;
  private altered: string | null = null;
  private requestModel: string | null = null;
  /** The model in the path, or the provider's URL, of the first target that the key may use: policies depend on it. */
  private pathModel: string | null = null;
  /** Why a target with models of its own cannot have the call. */
  private problem: string | null = null;

  constructor(
    private readonly route: Route,
    private readonly req: Request,
    private readonly providers: ProvidersService,
  ) {
    this.endpoint = req.target.endpoint;
    this.upstreamPath = req.target.upstreamPath;
  }

  /**
   * Points the call at the first target in order that the key may use, for what is checked before the body is there.
   *
   * @throws GatewayError endpoint_not_allowed, no_provider_configured
   */
  check(): void {
    const { dialect, targets } = this.route;
    const isOther = dialect === 'openai' ? isAnthropic(this.endpoint) : isOpenAi(this.endpoint);
    if (dialect !== 'any' && isOther) {
      const message = `The targets of this route have the ${dialect === 'openai' ? 'OpenAI' : 'Anthropic'} API only.`;
      throw new GatewayError('endpoint_not_allowed', { message });
    }
    let isForbidden = false;
    for (const { provider: name } of targets) {
      const provider = this.find(name);
      if (provider === null) continue;
      if (this.allows(provider)) {
        this.use(provider);
        this.pathModel = this.pathModelOf(provider);
        return;
      }
      isForbidden = true;
    }
    if (isForbidden) throw new GatewayError('endpoint_not_allowed');
    throw new GatewayError('no_provider_configured', { message: 'No target of this route can be used.' });
  }

  /** The providers that the call may be sent to. */
  targetProviders(): Provider[] {
    return this.route.targets
      .map(({ provider }) => this.find(provider))
      .filter((one) => one !== null && this.allows(one)) as Provider[];
  }

  /** What responses depend on besides the request: the targets, and their own names of models. */
  get identity(): string {
    const { name, targets } = this.route;
    return JSON.stringify([name, targets.map(({ provider, models }) => [provider, models && [...models]])]);
  }

  /** Should the body be in memory, so that it can be sent twice or with another model? */
  wantsBody(call: PolicyCall): boolean {
    if (call.requestBytes === 0) return false;
    const { retryOn, maxAttempts, targets } = this.route;
    return (
      (maxAttempts > 1 && (retryOn.refused || retryOn.failed)) ||
      targets.some(({ models }) => models !== null)
    );
  }

  /** Targets that the call may be sent to, with the model that they are sent. @param model in the request */
  candidates(model: string): { provider: string; model: string }[] {
    const found = [];
    for (const { provider: name, models } of this.route.targets) {
      const provider = this.find(name);
      if (provider !== null && this.allows(provider) && this.readsModel(provider))
        found.push({ provider: name, model: models?.get(model) ?? model });
    }
    return found;
  }

  /**
   * Every target that the call may be sent to, also those that read the model from somewhere else.
   *
   * @param model in the request; null: it is not certain
   */
  possible(model: string | null): { provider: string; model: string | null }[] {
    const usable = this.targetProviders();
    return this.route.targets.flatMap(({ provider: name, models }) => {
      const provider = usable.find((one) => one.name === name);
      if (provider === undefined) return [];
      const isRead = model !== null && this.readsModel(provider);
      return [{ provider: name, model: isRead ? (models?.get(model) ?? model) : null }];
    });
  }

  /** Excludes the targets of a provider for which a model has no price. */
  exclude(provider: string, model: string, requested: string): void {
    this.route.targets.forEach((target, i) => {
      if (target.provider === provider && (target.models?.get(requested) ?? requested) === model)
        this.excluded |= 1 << i;
    });
  }

  /** How many attempts the providers may bill: of a call that they refused, none does. */
  get billableAttempts(): number {
    return this.route.retryOn.failed ? this.route.maxAttempts : 1;
  }

  /**
   * Chooses the first target.
   *
   * @throws GatewayError model_not_determined if each has models of its own and the request's is not certain,
   *   no_provider_configured
   */
  begin(): void {
    const { route, req } = this;
    const { admitted, record } = req.call;
    const now = performance.now();
    this.admitted = admitted;
    this.replacement = admitted?.replacement ?? null;
    this.altered = record.altered;
    this.requestModel = record.requestModel;
    if (route.strategy === 'spread')
      this.affinity = hashOf(record.attribution?.sessionId ?? req.caller.grant.keyId);
    route.budget.called(now);
    this.following = this.choose(now, true);
    if (this.following === null) this.reject();
    this.advance();
    record.attempt = { callId: record.origin.id, number: 1 };
    record.origin.provider = req.call.provider.name;
    record.origin.upstream = req.call.provider.origin;
    this.describe(record);
  }

  /** Finds a target for another attempt. @returns false if there is none, or no retry is left */
  findNext(): boolean {
    if (this.attempts >= this.route.maxAttempts) return false;
    const now = performance.now();
    const found = this.choose(now, false);
    if (found === null || !this.route.budget.take(now)) return false;
    this.following = found;
    return true;
  }

  /** Has the next attempt go to the target that was found. */
  advance(): void {
    this.choice = this.following!;
    this.following = null;
    this.attempts++;
    this.begun = this.choice.target.health.begin(performance.now());
    this.use(this.choice.provider);
    const { body, provider } = this.choice;
    if (this.admitted !== null) this.admitted.replacement = body ?? this.replacementFor(provider);
  }

  /** Sets what the row of the present attempt says of its model. */
  describe(record: CallRecord): void {
    const { model, provider } = this.choice;
    const inPath = this.pathModelOf(provider);
    if (inPath !== this.pathModel) record.requestModel = inPath ?? record.body.model;
    else if (this.admitted?.body) record.requestModel = model ?? this.requestModel;
    const altered = this.replacementFor(provider) === null ? null : this.altered;
    record.altered = model === null ? altered : altered === null ? 'model' : `${altered}, model`;
  }

  succeeded(): void {
    if (this.begun !== -1) this.choice.target.health.succeeded(this.begun);
    this.begun = -1;
  }

  /** @param retryAfterMs from the response; null: it has none */
  refused(retryAfterMs: number | null): void {
    if (this.begun !== -1) this.choice.target.health.refused(this.begun, performance.now(), retryAfterMs);
    this.begun = -1;
  }

  failed(): void {
    if (this.begun !== -1) this.choice.target.health.failed(this.begun, performance.now());
    this.begun = -1;
  }

  /** The attempt is over; if nothing was reported, it showed nothing about the target. */
  ended(): void {
    if (this.begun !== -1) this.choice.target.health.ended(this.begun);
    this.begun = -1;
  }

  /** Is a call sent to another target for this? */
  retriesOn(cause: 'connect' | 'refused' | 'failed'): boolean {
    return this.route.retryOn[cause];
  }

  private choose(now: number, orResting: boolean): Choice | null {
    const { route } = this;
    for (;;) {
      const i = chooseTarget(route, this.excluded, this.affinity, now, orResting);
      if (i === -1) return null;
      this.excluded |= 1 << i;
      const target = route.targets[i]!;
      const provider = this.find(target.provider);
      if (provider === null) continue;
      if (!this.allows(provider) || !this.canSign(provider)) continue;
      if (this.admitted?.isModelRequired === true && !this.readsModel(provider)) continue;
      if (target.models === null) return { target, provider, body: null, model: null };
      const choice = this.withModel(target, provider, target.models);
      if (choice !== null) return choice;
    }
  }

  /** Whether a provider reads the model from where policies did: its URL, or that of the first target, may name a deployment. */
  private readsModel(provider: Provider): boolean {
    return this.pathModelOf(provider) === this.pathModel;
  }

  private pathModelOf({ basePath }: Provider): string | null {
    const at = this.req.target.provider === null ? 0 : withoutBasePath(this.endpoint, basePath);
    return modelFromPath(basePath + this.endpoint.slice(at));
  }

  /** A signature needs the whole body. It was not gathered if the provider has been changed meanwhile. */
  private canSign({ signs }: Provider): boolean {
    return !signs || this.admitted!.body !== null || this.admitted!.requestBytes === 0;
  }

  private withModel(target: Target, provider: Provider, models: ReadonlyMap<string, string>): Choice | null {
    const call = this.admitted!;
    const asItIs = { target, provider, body: null, model: null };
    if (call.modelSource === 'none' || call.modelSource === 'list') return asItIs;
    const { model } = call;
    if (model === null) {
      this.problem = call.modelProblem;
      return null;
    }
    const own = models.get(model);
    if (own === undefined || own === model) return asItIs;
    const bytes = this.replacementFor(provider) ?? call.body;
    const body = call.modelSource === 'body' && bytes !== null ? call.withModel(bytes, own) : null;
    if (body !== null) return { target, provider, body, model: own };
    this.problem = 'this route replaces the model, which it can only in a JSON body of at most 32 MiB';
    return null;
  }

  /** What policies send this target in place of the body; null if nothing. */
  private replacementFor(provider: Provider): Buffer | null {
    return this.admitted?.isReplacedFor(provider) === true ? this.replacement : null;
  }

  private reject(): never {
    if (this.problem === null)
      throw new GatewayError('no_provider_configured', { message: 'No target of this route can be used.' });
    throw new GatewayError('model_not_determined', {
      message: `The model of this request cannot be determined: ${this.problem}.`,
    });
  }

  /** A provider that may have the call; null if there is none. It may have been given to another team since the call began. */
  private find(name: string): Provider | null {
    const provider = this.providers.find(name);
    if (provider === null || !isOpenTo(provider, this.req.caller.grant.teamId)) return null;
    const mayHave = !provider.forwardsCredentials || mayHaveCredential(this.route, provider, this.providers);
    return mayHave ? provider : null;
  }

  private allows(provider: Provider): boolean {
    const { endpoints, basePath } = provider;
    const { caller, method, rawHeaders } = this.req;
    const at = this.req.target.provider === null ? 0 : withoutBasePath(this.endpoint, basePath);
    const endpoint = this.endpoint.slice(at);
    const query = this.upstreamPath.slice(this.endpoint.length);
    return allowsEndpoint(ruleAt(caller.grant, provider), method, endpoint, rawHeaders, query, endpoints);
  }

  /** Points the request at a provider. */
  private use(provider: Provider): void {
    const { target } = this.req;
    const at = target.provider === null ? 0 : withoutBasePath(this.endpoint, provider.basePath);
    this.req.call.provider = provider;
    target.endpoint = this.endpoint.slice(at);
    target.upstreamPath = this.upstreamPath.slice(at);
  }
}

function isOpenAi(endpoint: string): boolean {
  return COMMON_POSTS.has(endpoint) && !isAnthropic(endpoint);
}
