import type { Socket } from 'node:net';
import { GatewayError } from '../../errors/gateway-error.js';
import { patience, withTimeout } from '../../platform/patience.js';
import type { Outcome } from '../../request-log/outcome.js';
import type { Call } from '../call.js';
import { Exchange } from '../exchange/exchange.js';
import type { ExchangeServices } from '../exchange/exchange-services.js';
import { providerHeaders, responseHeaders } from '../headers.js';
import { isContinued } from '../http/lingering-close.js';
import { modelOfQuery } from '../policies/model-source.js';
import { ConnectionUsage } from './connection-usage.js';
import { agreesToDeflate, opensWebSocket, openingHead, withoutSubprotocolKey } from './handshake.js';
import { GOING_AWAY, type SessionEnd, WebSocketSession } from './websocket-session.js';
import type { WebSocketSessions } from './websocket-sessions.service.js';

const EARLY = 'The client sent data before the WebSocket was open (RFC 6455 4.1).';
/** What has arrived is read at the end of a WebSocket for at most this long. */
const READING = patience('usage at the end of a WebSocket', 5_000);

/** The call of one WebSocket: its handshake, and then all that passes on the connection. */
export class WebSocketExchange extends Exchange {
  private session: WebSocketSession | null = null;
  /** Releases what the open WebSocket takes. */
  private release = () => {};

  constructor(
    call: Call,
    services: ExchangeServices,
    private readonly sessions: WebSocketSessions,
  ) {
    super(call, services);
    const { target } = call;
    // The Responses API takes the models from messages, whatever the query says.
    if (!target.endpoint.endsWith('/realtime')) return;
    const query = target.upstreamPath.slice(target.endpoint.length + 1);
    this.record.requestModel ??= modelOfQuery(query).model;
  }

  /** Without its client, a WebSocket has no purpose. */
  protected override get mayFinish(): boolean {
    return false;
  }

  protected override dispatch(): void {
    const { req } = this;
    const { provider } = this.call;
    const raw = withoutSubprotocolKey(req.rawHeaders, provider.forwardsCredentials);
    const path = provider.basePath + req.target.upstreamPath;
    const headers = providerHeaders(provider, 'GET', path, raw, null);
    this.pool.dispatch({ path, method: 'GET', headers, body: null, upgrade: 'websocket' }, this);
  }

  /** undici calls it for a response with the status 101; any other one is forwarded as always. */
  onUpgrade(status: number, rawHeaders: Buffer[], socket: Socket): void {
    this.connection?.handOver();
    this.connection = null;
    this.release = () => this.pool.cancelReservation();
    const { req, call, record } = this;
    if (this.phase === 'done' || this.isEarly) {
      this.discard(socket, new GatewayError('invalid_request', { message: EARLY }), 'client_error');
      return;
    }
    if (!opensWebSocket(rawHeaders)) {
      this.discard(socket, new GatewayError('upstream_invalid_response'), 'upstream_error');
      return;
    }
    const headers = responseHeaders(rawHeaders, call.provider.secret, call.id);
    record.responseBegun(status, headers);
    this.phase = 'responding';
    this.resumeUpstream = () => {};
    // From here on the session ends the call.
    this.res.off('close', this.onClientClose);
    this.res.off('timeout', this.onClientIdle);
    const usage = new ConnectionUsage(agreesToDeflate(headers));
    const session = new WebSocketSession(req.socket, socket, record, usage, (end) => {
      void this.ended(end, usage);
    });
    this.session = session;
    this.res.on('timeout', () => session.close(GOING_AWAY, 'idle', 'request_timeout'));
    req.socket.setTimeout(this.services.settings.clientIdleTimeoutMs);
    const leave = this.sessions.add({ call, usage, session });
    this.release = () => {
      leave();
      this.pool.cancelReservation();
    };
    this.whenDurable(() => {
      session.start(openingHead(headers));
      return true;
    });
  }

  override onError(error: Error): void {
    if (this.session === null) super.onError(error);
    else this.session.cut();
  }

  /**
   * The client has sent something behind its handshake. Node's parser took it for another request, or for an error, so the
   * provider would get the frames with a part missing.
   */
  private get isEarly(): boolean {
    const { socket } = this.req;
    return socket.bytesRead !== this.call.webSocket!.bytesRead || isContinued(socket);
  }

  /** Fails the call although the provider has opened the connection. */
  private discard(socket: Socket, error: GatewayError, outcome: Outcome): void {
    socket.on('error', () => {});
    socket.destroy();
    this.release();
    this.fail(error, outcome);
  }

  /** Journals the end at once; the row follows when what has arrived is read. */
  private async ended({ outcome, errorCode }: SessionEnd, usage: ConnectionUsage): Promise<void> {
    this.services.log.end(this.record, outcome, errorCode);
    await withTimeout(READING.ms, usage.settled());
    this.record.countedUsage = usage.total;
    this.record.reportUsage(usage.counted);
    usage.close();
    this.release();
    this.settle();
  }
}
