import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Logger } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import type { ILayer } from 'express-serve-static-core';
import express, { type Express, type Request, type Response } from 'express';
import type { Settings } from '../../config/settings.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { uuidV7 } from '../../platform/uuid-v7.js';
import { Call } from '../call.js';
import { closeAfterResponse, isClosing, noteContinued } from './lingering-close.js';
import { respondToParserError } from './parser-error.js';
import { afterEarlierResponses, endHeadTime, hasWaitingRequests, restartHeadTime } from './pipelining.js';
import { RejectionLog } from './rejection-log.js';
import { validateRequestHead } from './request-validation.js';
import { readRequestTarget, type RequestTarget } from './request-target.js';
import { sendGatewayError } from './send-error.js';
import { lingerOverUnreadBody } from './unread-body.js';

/** With ADMIN_PORT, these paths exist on that port only. */
const ADMIN_ONLY = /^\/(?:admin|console|device|docs|docs-json|metrics)(?:[/?]|$)/;
/** The same for where clients get tokens, which is beside the calls. */
const CLIENTS_ONLY = /^\/(?:oauth|managed|\.well-known\/oauth-authorization-server)(?:[/?]|$)/;
/** The routes of ProxyController. */
const CALL_ROUTES: unknown[] = ['/v1/{*path}', '/p/{*path}'];
/** A path that matches no call: its first segment is plain text, and not that of a call. */
const OTHER_PATH = /^\/(?!(?:v1|p)(?:\/|$))[\w.-]+(?:\/|$)/i;
const HEALTH = /^\/health(?:[/?]|$)/;
/**
 * What Express sees in place of a path with a percent-escape, because it would decode the path and fail for bytes that
 * are not UTF-8. The route and middleware for `v1/*splat` or `p/*splat` still match it.
 */
const ESCAPED_PATH = { v1: '/v1/escaped', p: '/p/provider/escaped' };

/** What a listener serves: every endpoint, or, with ADMIN_PORT, calls on one and admin endpoints on the other. */
type Side = 'all' | 'calls' | 'admin';

/** Above the 60 s after which load balancers drop idle connections, so that they close first. */
const KEEP_ALIVE_MS = 75_000;
/** Largest request head: Node responds with 431 past it. */
const MAX_HEADER_BYTES = 65_536;

/**
 * Express behind a server of our own. The request gate runs before Express sees a request, and requests and responses
 * are created with Express's prototypes: Express would else call Object.setPrototypeOf on each, which Node 20 pays with
 * some 60 µs per call.
 */
export class GatewayHttpAdapter extends ExpressAdapter {
  /** While true, responses close their connections: the process is about to stop. */
  draining = false;
  /** With ADMIN_PORT: the only listener that serves the admin endpoints. */
  adminServer: Server | null = null;
  readonly rejections: RejectionLog;
  private unanswered = 0;
  /** Settles when calls are served; null once they are. */
  private held: Promise<void> | null = null;
  /** Listens and connects to Postgres. Set by ServingService. */
  open: ((port: number, host: string | undefined) => Promise<void>) | null = null;
  /** Set by ProxyModule. */
  fastPath: CallRunner | null = null;
  /** Endpoints of the gateway's own below the paths of calls, for requests that no provider knows. Set by OauthModule. */
  ownEndpoints: OwnEndpoints | null = null;
  private readonly routing = new Logger('Proxy');
  private isFast = false;
  /** Number of Express's layers when `isFast` was last decided. */
  private layersSeen = 0;

  constructor(readonly settings: Settings) {
    super(expressApp());
    this.rejections = new RejectionLog(settings);
  }

  /** Requests whose responses have not ended. */
  get openRequests(): number {
    return this.unanswered;
  }

  /**
   * From here on everything but /health waits: the process listens before it has looked at Postgres, and a restart would
   * reject requests in between although the database is reachable.
   *
   * @returns a function that serves them
   */
  hold(): () => void {
    let release = () => {};
    this.held = new Promise((resolve) => {
      release = () => {
        this.held = null;
        resolve();
      };
    });
    return release;
  }

  /**
   * Serves as the gateway does. Without the module of the gateway it listens as Express does.
   *
   * @param args perhaps the address, and the callback of Nest's listen(), which gets the error if there is one
   */
  override listen(port: number | string, ...args: unknown[]): Server {
    const callback = args.find((arg) => typeof arg === 'function') as (error?: unknown) => void;
    const host = args.find((arg) => typeof arg === 'string');
    if (this.open === null) return super.listen(port, ...(args as []));
    this.open(Number(port), host).then(() => callback(), callback);
    return this.getHttpServer();
  }

  /** @throws Error, because a body parser would read what is forwarded */
  override useBodyParser(): never {
    throw new Error(
      'A body parser for all paths would read the bodies of calls before they are forwarded. Give it to your controllers ' +
        'only: consumer.apply(express.json()).forRoutes(YourController) in configure() of your module',
    );
  }

  override initHttpServer(): void {
    const isApart = this.settings.adminPort !== undefined;
    this.httpServer = this.makeServer(isApart ? 'calls' : 'all');
    this.adminServer = isApart ? this.makeServer('admin') : null;
  }

  /** Everything that listens. */
  get servers(): Server[] {
    return [this.getHttpServer(), ...(this.adminServer === null ? [] : [this.adminServer])];
  }

  override async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => new Promise((closed) => server.close(closed))));
  }

  private makeServer(side: Side): Server {
    const app = this.getInstance<Express>();
    const admit = (req: IncomingMessage, res: ServerResponse) =>
      this.admit(app, side, req as Request, res as Response);
    const handle = (req: IncomingMessage, res: ServerResponse) => {
      if (this.held === null || HEALTH.test(req.url!)) admit(req, res);
      else void this.held.then(() => req.socket.destroyed || admit(req, res));
    };
    const receive = (req: IncomingMessage, res: ServerResponse) => {
      endHeadTime(req.socket);
      if (isClosing(req.socket)) req.resume();
      else if (res.socket !== null) handle(req, res);
      else afterEarlierResponses(req, res, handle);
    };
    const server = createServer({
      IncomingMessage: withPrototype(IncomingMessage, app.request),
      ServerResponse: withPrototype(
        ServerResponse,
        app.response,
      ) as unknown as typeof ServerResponse<IncomingMessage>,
      headersTimeout: this.settings.clientHeadersTimeoutMs,
      connectionsCheckingInterval: Math.min(30_000, Math.ceil(this.settings.clientHeadersTimeoutMs / 2)),
      requestTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // The gate rejects a missing Host, in our shape.
      requireHostHeader: false,
      noDelay: true,
    }) as Server;
    // Node stops filling req.headers at 1,000 names without a word; the size limit above is the bound.
    server.maxHeadersCount = 0;
    // A client that neither sends nor takes a byte: the forwarder lifts it while the provider is the one waited for.
    server.timeout = this.settings.clientIdleTimeoutMs;
    server.on('request', receive);
    // Node would send 100 Continue itself; the forwarder does once the key and the size are known to be good.
    server.on('checkContinue', receive);
    // The gate rejects any other expectation.
    server.on('checkExpectation', receive);
    server.on('connect', (_req: IncomingMessage, socket: Socket) => {
      // Node has taken its own listeners off the socket: a reset from here on would end the process.
      socket.on('error', () => socket.destroy());
      respondToParserError(socket, new GatewayError('method_not_allowed'), uuidV7(), this.rejections);
    });
    server.on('clientError', (error: Error & { code?: string }, socket: Socket) => {
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && hasWaitingRequests(socket)) {
        const onLate = () => server.emit('clientError', error, socket);
        restartHeadTime(socket, this.settings.clientHeadersTimeoutMs, onLate);
      } else {
        respondToParserError(socket, error, uuidV7(), this.rejections);
      }
    });
    return server;
  }

  /** The request gate: lets a well-formed request with a safe target through to Express. */
  private admit(app: Express, side: Side, req: Request, res: Response): void {
    this.unanswered++;
    res.on('close', () => {
      this.unanswered--;
      if (!req.complete) lingerOverUnreadBody(req);
    });
    if (this.draining) {
      res.shouldKeepAlive = false;
      if (hasWaitingRequests(req.socket)) closeAfterResponse(req.socket);
    }
    const raw = req.url;
    const id = uuidV7();
    let target: RequestTarget | null;
    try {
      if (validateRequestHead(req, this.settings.maxBodyBytes)) {
        res.shouldKeepAlive = false;
        noteContinued(req.socket);
        closeAfterResponse(req.socket);
      }
      target = readRequestTarget(raw);
      if (target !== null) {
        if (side === 'admin') throw new GatewayError('not_found');
        req.target = target;
        req.call = new Call(id, req, res);
        req.originalUrl = raw;
        if (target.path.includes('%')) req.url = target.provider === null ? ESCAPED_PATH.v1 : ESCAPED_PATH.p;
      } else if (side !== 'all' && (side === 'calls' ? ADMIN_ONLY : CLIENTS_ONLY).test(raw)) {
        throw new GatewayError('not_found');
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.rejections.addRequest(error, req, id);
      sendGatewayError(res, error, id, raw);
      return;
    }
    // Not on calls: what a provider sends is forwarded as it is.
    if (target === null) res.setHeader('x-content-type-options', 'nosniff');
    if (target === null || this.ownEndpoints === null) return this.forward(app, req, res, target !== null);
    const own = this.ownEndpoints;
    const taken = own.takes(req, target);
    if (taken === false) this.forward(app, req, res, true);
    else if (taken === true) void own.respond(req, res, target);
    else
      void taken.then((isTaken) => {
        if (isTaken) void own.respond(req, res, target);
        else if (!req.socket.destroyed) this.forward(app, req, res, true);
      });
  }

  private forward(app: Express, req: Request, res: Response, isCall: boolean): void {
    if (isCall && this.useFastPath(app)) this.fastPath!.run(req, res);
    else app(req, res);
  }

  /** False if a module has registered something that Express runs before the controller of calls, or a hook. */
  private useFastPath(app: Express): boolean {
    const { stack } = app.router;
    if (stack.length !== this.layersSeen) {
      this.layersSeen = stack.length;
      // Middleware that is bound to the controller has layers of the same paths.
      const own = stack.filter(({ route }) => CALL_ROUTES.includes(route?.path));
      // The first layer is Nest's own, which runs the hooks.
      const before = stack.slice(1, stack.indexOf(own[0]!));
      const isBefore = own.length !== CALL_ROUTES.length || before.some(concernsCalls);
      const reason = isBefore ? 'middleware or a route for the paths of calls' : this.fastPath!.prepare();
      this.isFast = reason === null;
      if (reason !== null)
        this.routing.log(`Each call takes about half as much processor time again, because of ${reason}.`);
    }
    const { onRequestHook, onResponseHook, onRouteTriggered } = this as unknown as Hooks;
    return this.isFast && !onRequestHook && !onResponseHook && !onRouteTriggered;
  }
}

/** See OauthEndpoints. */
interface OwnEndpoints {
  takes(req: Request, target: RequestTarget): boolean | Promise<boolean>;
  respond(req: Request, res: Response, target: RequestTarget): Promise<void>;
}

/** See FastPath. */
interface CallRunner {
  prepare(): string | null;
  run(req: Request, res: Response): void;
}

/** Members that Express and its adapter do not declare. */
interface PathLayer extends ILayer {
  /** As it was registered: a string, a RegExp, or an array of them. */
  rawPath?: unknown;
}
interface Hooks {
  onRequestHook?: unknown;
  onResponseHook?: unknown;
  onRouteTriggered?: unknown;
}

/** True for a route or middleware that may match a call, if only for one path. */
function concernsCalls(layer: PathLayer): boolean {
  const path: unknown = layer.route?.path ?? layer.rawPath;
  // As a route, this is the start page; as middleware, it matches every request.
  if (layer.route !== undefined && path === '/') return false;
  const paths: unknown[] = Array.isArray(path) ? path : [path];
  return !paths.every((one) => typeof one === 'string' && OTHER_PATH.test(one));
}

function expressApp(): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  // ADMIN_ONLY compares case-sensitively, so routes must too.
  app.enable('case sensitive routing');
  return app;
}

/** A constructor like Node's own whose instances are created with the given prototype. */
function withPrototype<T extends new (...args: never[]) => object>(base: T, prototype: object): T {
  const constructor = base as unknown as { apply(self: object, args: unknown[]): void };
  function Instance(this: object, ...args: unknown[]): void {
    constructor.apply(this, args);
  }
  Instance.prototype = prototype;
  // V8 sizes an instance by the fields that its constructor, and those it calls, set.
  Object.setPrototypeOf(Instance, base);
  return Instance as unknown as T;
}
