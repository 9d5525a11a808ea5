import type { IncomingHttpHeaders } from 'node:http';
import type { Request } from 'express';
import { JsonMembers } from '../../bodies/json-members.js';
import { modelOfMultipart } from '../../bodies/multipart-model.js';
import { hasRepeatedMembers } from '../../bodies/repeated-members.js';
import type { NamedModel } from '../../bodies/named-model.js';
import { choices, maxOutputTokens } from '../../bodies/output-limits.js';
import { RequestReader } from '../../bodies/request-reader.js';
import type { Grant } from '../../auth/caller.js';
import { overridesTarget } from '../../auth/endpoint-rule.js';
import { defineGatewayError, GatewayError } from '../../errors/gateway-error.js';
import type { Provider } from '../../providers/provider.js';
import { type Attribution, withTags } from '../../request-log/attribution.js';
import type { Reservation } from '../../request-log/charges.js';
import {
  checkLength,
  misleadingHeader,
  modelOfPath,
  modelSource,
  type ModelSource,
  modelsOfQuery,
  onlyModelOfQuery,
} from './model-source.js';

/** With these, some providers use another model than `model`. */
const OTHER_MODELS = ['models', 'fallbacks'];
const JSON_TYPE = /^(?:application|text)\/(?:[\w.+-]+\+)?json\s*(?:;\s*charset="?utf-8"?\s*)?$/i;
const MULTIPART = /^multipart\//i;

const BODY_NOT_DETERMINED = defineGatewayError('body_not_determined', {
  status: 400,
  message:
    'This gateway key has rules that are checked against the request body, which cannot be read with certainty.',
  retryable: false,
});

/**
 * Makes a change to a response body.
 *
 * @returns null to leave it as it is
 * @throws if it cannot be read
 */
export type ResponseFilter = (body: Buffer) => Buffer | null;

/** A call as policies see it, before it is forwarded. Everything read from the body is read when it is asked for. */
export class PolicyCall {
  /**
   * The chunks read of a body that turned out to be too large to gather; the rest of it is streamed.
   *
   * @internal
   */
  prefix: readonly Buffer[] | null = null;
  /**
   * Which providers get `replacement`; the others get `body`.
   *
   * @internal
   */
  isReplacedFor: (provider: Provider) => boolean = () => true;
  /**
   * What `responseFilter` changes, for `x-gateway-altered`.
   *
   * @internal
   */
  filtered: string | null = null;
  private sentBody: Buffer | null = null;
  private forwardedBody: Buffer | null = null;
  private filter: ResponseFilter | null = null;
  private json: JsonMembers | null = null;
  private multipart: NamedModel | null = null;
  private named: NamedModel | null = null;
  private source: ModelSource | null = null;
  private overrides: boolean | null = null;
  /**
   * A policy depends on the model: no target of a route may read another one.
   *
   * @internal
   */
  isModelRequired = false;
  private parsed: { value: unknown } | null = null;

  /** @internal */
  constructor(private readonly req: Request) {}

  /** The request body as the client sent it; null if there is none or no policy needs it. */
  get body(): Buffer | null {
    return this.sentBody;
  }

  /** What is forwarded in place of `body`; null if it is forwarded as it is. */
  get replacement(): Buffer | null {
    return this.forwardedBody;
  }

  /** @internal Policies call replaceBody(), which the row and the response mention. */
  set replacement(body: Buffer | null) {
    this.forwardedBody = body;
  }

  /** What changes the response body; null if it is sent as it is. */
  get responseFilter(): ResponseFilter | null {
    return this.filter;
  }

  /** UUIDv7: `x-gateway-request-id`, and the ID of the row. */
  get id(): string {
    return this.req.call.id;
  }

  get grant(): Grant {
    return this.req.caller.grant;
  }

  /** Name of the provider. */
  get provider(): string {
    return this.req.call.provider.name;
  }

  /**
   * The route that the call uses; undefined if it uses none.
   *
   * @internal
   */
  get routed(): NonNullable<Request['call']['routed']> | undefined {
    return this.req.call.routed ?? undefined;
  }

  /** Where the call may be sent: the provider, or the targets of its route. */
  get providers(): readonly Provider[] {
    return this.req.call.targetProviders();
  }

  get method(): string {
    return this.req.method;
  }

  /** Raw path after `/p/<provider>`, without the query. */
  get endpoint(): string {
    return this.req.target.endpoint;
  }

  /** As Node parsed them. They contain the caller's key. */
  get headers(): IncomingHttpHeaders {
    return this.req.headers;
  }

  /** Bytes of the body, if they are known: it was gathered, or has a Content-Length. */
  get requestBytes(): number | null {
    if (this.body !== null) return this.body.length;
    const declared = this.req.headers['content-length'];
    if (declared !== undefined) return Number(declared);
    return this.req.headers['transfer-encoding'] === undefined ? 0 : null;
  }

  /** Whom the call is for, as the client says; from the headers and, if it was gathered, a body of up to 256 KiB. */
  get attribution(): Attribution | null {
    return this.req.call.record.attribution;
  }

  /** The session that its headers name, as the client says; null if they name none. */
  get session(): string | null {
    return this.req.call.record.origin.attribution?.sessionId ?? null;
  }

  /**
   * Adds tags to the row of the call. They replace tags of the client with the same names; a row has at most eight, and those
   * of the client that exceed that are dropped.
   *
   * @param tags names and values of 1 to 64 characters
   */
  addTags(tags: Readonly<Record<string, string>>): void {
    const { record } = this.req.call;
    record.attribution = withTags(record.attribution, tags);
  }

  /** Where the request names its model. */
  get modelSource(): ModelSource {
    return (this.source ??= modelSource(this.method, this.endpoint, this.req.call.provider.basePath));
  }

  /** A header or parameter lets some servers read another method or path from the request. */
  get isOverridden(): boolean {
    return (this.overrides ??= overridesTarget(this.req.rawHeaders, this.query));
  }

  /** True for the handshake of a WebSocket. */
  get isWebSocket(): boolean {
    return this.req.call.webSocket !== null;
  }

  /** Aborted once the client has disconnected, for a policy that waits. Then the call is not forwarded. */
  get disconnected(): AbortSignal {
    const { socket } = this.req;
    const { res } = this.req.call;
    const gone = new AbortController();
    if (socket.destroyed) gone.abort();
    else res.once('close', () => socket.destroyed && gone.abort());
    return gone.signal;
  }

  /** The model; null unless it is certain that the provider reads the same one. */
  get model(): string | null {
    return this.namedModel.model;
  }

  /**
   * The model, for a policy that must not be bypassed.
   *
   * @throws GatewayError model_not_determined if some parser could read another one, or the request names none
   */
  requireModel(): string {
    this.isModelRequired = true;
    const { model, problem } = this.namedModel;
    if (model !== null) return model;
    throw new GatewayError('model_not_determined', {
      message: `The model of this request cannot be determined: ${problem}.`,
    });
  }

  /**
   * The parsed body, for a policy that must not be bypassed; the policy's `needsBody` must be true for the call.
   *
   * @throws GatewayError body_not_determined if the body is compressed, no JSON object, or some parser could read another
   * one from it, as with two members of one name, in whatever case
   */
  requireBody(): Record<string, unknown> {
    if (this.body === null && this.requestBytes !== 0)
      throw new Error('requireBody() needs a policy whose needsBody() is true for the call');
    const problem = this.body === null ? 'there is none' : (this.notJson ?? this.members.problem);
    const value = problem === null ? (this.parsedBody as Record<string, unknown> | undefined) : undefined;
    if (value !== undefined && !hasRepeatedMembers(this.body!, value)) return value;
    const why = problem ?? (value === undefined ? 'it is not valid JSON' : 'members have the same name');
    throw new GatewayError(BODY_NOT_DETERMINED, {
      message: `The body of this request cannot be determined: ${why}.`,
    });
  }

  /**
   * The parsed body; undefined if it is no JSON. It decides nothing: of members with the same name it has the last one, and
   * a compressed body is undefined. Use `requireBody` and `requireModel` for rules. Parsing takes some 5 ms per MiB, in which no other call is served.
   */
  get parsedBody(): unknown {
    if (this.parsed === null) {
      this.parsed = { value: undefined };
      try {
        if (this.body !== null) this.parsed.value = JSON.parse(this.body.toString());
      } catch {
        // It stays undefined.
      }
    }
    return this.parsed.value;
  }

  /** The most output tokens that the request asks for; null if it does not say or is ambiguous. */
  get maxOutputTokens(): number | null {
    const { members, endpoint } = this;
    return members.problem === null ? maxOutputTokens(endpoint, members) : null;
  }

  /** The number of outputs that the request asks for, each as long as its limit allows. */
  get choices(): number {
    const { members, endpoint } = this;
    return members.problem === null ? choices(endpoint, members) : 1;
  }

  /**
   * Members of the JSON body.
   *
   * @internal
   */
  get members(): JsonMembers {
    return (this.json ??= new JsonMembers(this.body ?? Buffer.alloc(0), this.req.call.record.body.json));
  }

  /**
   * Why the bytes of the body cannot be read as JSON; null if they can be.
   *
   * @internal
   */
  get notJson(): string | null {
    const type = this.req.headers['content-type'];
    const isJson = type === undefined || JSON_TYPE.test(type);
    return misleadingHeader(this.req.rawHeaders) ?? (isJson ? null : 'the Content-Type is not JSON in UTF-8');
  }

  /**
   * Forwards other bytes than the client sent. Only for features that an administrator turns on: the row and the response
   * say so.
   *
   * @param what for `x-gateway-altered` and the row
   * @param isFor which targets of a route get them
   */
  replaceBody(body: Buffer, what: string, isFor = this.isReplacedFor): void {
    this.forwardedBody = body;
    this.isReplacedFor = isFor;
    this.req.call.record.altered = what;
  }

  /** Why `model` is null. */
  get modelProblem(): string | null {
    return this.namedModel.problem;
  }

  /**
   * What is forwarded, with another model as the value of its one "model" member: every other byte stays.
   *
   * @param body `replacement`, or `body`
   * @returns null if the model is not named by exactly one member of a JSON body
   */
  withModel(body: Buffer, model: string): Buffer | null {
    if (this.multipart !== null || this.modelOfJson().model === null) return null;
    const [member] = (body === this.body ? this.members : membersOf(body)).all('model');
    if (member === undefined) return null;
    const { start, end } = member;
    return Buffer.concat([body.subarray(0, start), Buffer.from(JSON.stringify(model)), body.subarray(end)]);
  }

  /**
   * Sets what the call has reserved of budgets. If its process dies, it is charged that; its row is priced with this model.
   *
   * @internal
   */
  reserve(reservation: Reservation | null): void {
    const { record } = this.req.call;
    record.reservation = reservation;
    record.requestModel = this.named?.model ?? record.requestModel;
  }

  /** Changes the response body, which is gathered for it: at most 8 MiB. @param what for `x-gateway-altered` and the row */
  filterResponse(filter: ResponseFilter, what: string): void {
    this.filter = filter;
    this.filtered = what;
  }

  /**
   * Takes the gathered body, and reads what takes long to read.
   *
   * @returns settles when the getters can be used; undefined if they can be at once
   *
   * @internal
   */
  gathered(body: Buffer): Promise<void> | undefined {
    this.sentBody = body;
    const type = this.req.headers['content-type'] ?? '';
    if (MULTIPART.test(type)) return this.readMultipart(body, type);
    return undefined;
  }

  private async readMultipart(body: Buffer, type: string): Promise<void> {
    this.multipart = await modelOfMultipart(body, type);
  }

  private get namedModel(): NamedModel {
    return (this.named ??= this.findModel());
  }

  /** With its `?`; empty if there is none. */
  private get query(): string {
    return this.req.target.upstreamPath.slice(this.endpoint.length);
  }

  private findModel(): NamedModel {
    const { method, endpoint, req, query } = this;
    const source = this.modelSource;
    if (this.isOverridden)
      return { model: null, problem: 'a header or parameter overrides the method or the path' };
    if (source === 'path') return checkLength(modelOfPath(method, endpoint, req.call.provider.basePath));
    if (source === 'query') return checkLength(onlyModelOfQuery(query.slice(1)));
    if (source !== 'body') return { model: null, problem: 'this endpoint names none' };
    if (query !== '' && modelsOfQuery(query.slice(1)).length > 0)
      return { model: null, problem: 'the query has a model parameter too' };
    if (this.multipart === null) return checkLength(this.modelOfJson());
    const problem = misleadingHeader(this.req.rawHeaders);
    return problem === null ? checkLength(this.multipart) : { model: null, problem };
  }

  private modelOfJson(): NamedModel {
    const problem = this.notJson ?? this.members.problem;
    if (problem !== null) return { model: null, problem };
    const json = this.members;
    const [member, ...others] = json.all('model');
    if (member === undefined) return { model: null, problem: 'the body has no "model" member' };
    if (others.length > 0)
      return { model: null, problem: `the body has ${others.length + 1} members named "model"` };
    const other = OTHER_MODELS.find((name) => json.all(name).length > 0);
    if (other !== undefined) return { model: null, problem: `the body names other models in "${other}"` };
    if (typeof member.value !== 'string')
      return { model: null, problem: '"model" is not a string of a model\'s length' };
    return { model: member.value, problem: null };
  }
}

/** Members of a body that was made here, some 0.1 to 2.5 µs a KiB. */
function membersOf(body: Buffer): JsonMembers {
  const reader = new RequestReader();
  reader.add(body);
  reader.finish();
  return new JsonMembers(body, reader.json);
}
