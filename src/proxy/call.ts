import type { Request, Response } from 'express';
import type { Caller } from '../auth/caller.js';
import type { ResponseRecorder } from '../idempotency/response-recorder.js';
import type { OnDisconnect } from '../providers/on-disconnect.js';
import type { Provider } from '../providers/provider.js';
import type { CallRecord } from '../request-log/call-record.js';
import type { FinishingCall } from './exchange/finishing-calls.service.js';
import type { RequestTarget } from './http/request-target.js';
import type { PolicyCall } from './policies/policy-call.js';
import type { RoutedCall } from './routing/routed-call.js';
import type { Handshake } from './websocket/handshake.js';

declare module 'express-serve-static-core' {
  interface Request {
    /** Where the call goes. Undefined for requests that are no calls, such as those of the admin API. */
    target: RequestTarget;
    /** What the gateway knows of the call. Undefined where `target` is. */
    call: Call;
  }
}

/**
 * A call on its way from the HTTP adapter to its exchange: all that the stages have found out about it. Each stage is
 * `forward(call)`. PolicyCall and RoutedCall, which are parts of it, find it as `req.call`.
 */
export class Call {
  /** When its head was here (monotonic ms). */
  readonly arrivedAt = performance.now();
  /** Where it is sent. Set by RouteGuard; with its access token by Forwarder; of a route, by the present attempt. */
  provider!: Provider;
  /** Null unless the call uses a route. Set by RouteGuard. */
  routed: RoutedCall | null = null;
  /** Null unless the call opens a WebSocket that its key may open. Set by RouteGuard. */
  webSocket: Handshake | null = null;
  /** The record of the present attempt. Set by RequestLogInterceptor; of a route, by each further attempt when it begins. */
  record!: CallRecord;
  /** What policies make of the call; null if its body is not read and its key has no policy. Set by AdmissionService. */
  admitted: PolicyCall | null = null;
  /** Stores the response for retries or the response cache; null if it is not stored. Set by CachingForwarder and IdempotentForwarder. */
  recorder: ResponseRecorder | null = null;
  /** Set while the response is read to its end although the client has disconnected, because its key or provider says so. */
  finishing: FinishingCall | null = null;
  /** Why nothing more of the body can be read. */
  bodyError: Error | null = null;

  /** @param id UUIDv7: `x-gateway-request-id`, and the ID of the row when the call is forwarded */
  constructor(
    readonly id: string,
    readonly req: Request,
    readonly res: Response,
  ) {}

  get target(): RequestTarget {
    return this.req.target;
  }

  /** Set by GatewayKeyGuard. */
  get caller(): Caller {
    return this.req.caller;
  }

  /** True while the call goes on even if its client disconnects: so that a retry can get the response, or its usage is read. */
  get outlivesClient(): boolean {
    return this.finishing !== null || this.recorder?.outlivesClient === true;
  }

  /** What happens if the client disconnects: as the key says, otherwise the provider of the present attempt. */
  get onDisconnect(): OnDisconnect {
    return this.caller.grant.onDisconnect ?? this.provider.onDisconnect;
  }

  /** The providers that the call may be sent to: its own, or those of its route. */
  targetProviders(): readonly Provider[] {
    return this.routed === null ? [this.provider] : this.routed.targetProviders();
  }

  /**
   * Sends `100 Continue` to a client that waits for it before it sends its body (RFC 9110 10.1.1). Called once key and size
   * have been accepted. HTTP/1.0 has no interim responses (RFC 9110 15.2).
   */
  sendContinue(): void {
    const { req } = this;
    if (req.headers.expect !== undefined && req.httpVersionMinor !== 0) this.res.writeContinue();
  }

  /**
   * Has the call rejected because its body is not well-formed, by whoever reads the body or is about to.
   *
   * @returns false if it is being forwarded
   */
  rejectBody(error: Error): boolean {
    if ((this.record as CallRecord | undefined)?.begun) return false;
    this.bodyError = error;
    this.req.emit('bodyError', error);
    return true;
  }
}
