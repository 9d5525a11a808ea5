import type { OutgoingHttpHeaders } from 'node:http';
import { Injectable, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import type { Grant } from '../../auth/caller.js';
import { readCredential } from '../../auth/credential.js';
import { KeyLookupService } from '../../auth/key-lookup.service.js';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { describeError } from '../../errors/describe-error.js';
import { GatewayError } from '../../errors/gateway-error.js';
import { ClientAddress } from '../../platform/client-address.js';
import { uuidV7 } from '../../platform/uuid-v7.js';
import { ProvidersService } from '../../providers/providers.service.js';
import { GatewayHttpAdapter } from '../../proxy/http/gateway-http.adapter.js';
import type { RequestTarget } from '../../proxy/http/request-target.js';
import { sendGatewayError } from '../../proxy/http/send-error.js';
import { RoutesService } from '../../routes/routes.service.js';
import { IssuedTokens } from './issued-tokens.service.js';
import { OauthGrants } from './oauth-grants.js';
import { OauthError, type Parameters, readParameters } from './parameters.js';

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

const METADATA = '/.well-known/oauth-authorization-server';

/** How a JSON request of Anthropic's SDKs is answered. Set by the module of the trusts. */
export type AssertionGrant = (parameters: Parameters, address: string | null) => Promise<object>;

export interface Reply {
  status: number;
  body: object | null;
  retryAfter?: number | null;
  headers?: OutgoingHttpHeaders;
}

type Responder = (req: Request, res: Response, provider: string | null) => Promise<Reply> | Reply;

interface Endpoint {
  /** True: only requests with the token of a sign-in. False: these, and those without a key. */
  needsToken: boolean;
  respond: Responder;
}

/** Of the metadata of RFC 8414, with the address that an endpoint is announced at. */
type Announced = (issuer: string) => Record<string, string>;

/**
 * Endpoints of RFC 6749, 7009 and 8414: at the root of the gateway, and below `/p/<provider>`, where a client finds them that
 * has one base URL. There, and below /v1, they take requests without a gateway key, which would get 401, and those with the
 * token of a sign-in, which no provider knows.
 */
@Injectable()
export class OauthEndpoints {
  /** What answers `/v1/oauth/token`; null: it is not answered here. */
  assertion: AssertionGrant | null = null;
  private readonly logger = new Logger('Tokens');
  private readonly addresses: ClientAddress;
  private readonly endpoints = new Map<string, Endpoint>();
  private readonly announced: Announced[] = [];

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly grants: OauthGrants,
    private readonly tokens: IssuedTokens,
    private readonly providers: ProvidersService,
    private readonly routes: RoutesService,
    private readonly keys: KeyLookupService,
  ) {
    this.addresses = new ClientAddress(env.trustedProxies, 'full');
    this.add(`GET ${METADATA}`, (_req, _res, provider) => this.metadata(provider));
    this.add('POST /oauth/token', (req, res) => this.token(req, res));
    this.add('POST /oauth/revoke', (req, res) => this.revoke(req, res));
    this.add('POST /v1/oauth/token', (req, res) => this.exchangeAssertion(req, res));
  }

  /**
   * Adds an endpoint of a module. It exists while a grant is on.
   *
   * @param endpoint method and path, whose first characters mayBeOwn() knows
   */
  add(
    endpoint: string,
    respond: Responder,
    { needsToken = false, announced }: { needsToken?: boolean; announced?: Announced } = {},
  ): void {
    this.endpoints.set(endpoint, { needsToken, respond });
    if (announced !== undefined) this.announced.push(announced);
  }

  /** False: a request with this target goes on as a call. Decided by two characters of the path of most calls. */
  takes(req: Request, { endpoint }: RequestTarget): boolean | Promise<boolean> {
    if (!mayBeOwn(endpoint)) return false;
    const found = this.endpoints.get(`${req.method} ${endpoint}`);
    if (found === undefined || this.grants.on.length === 0) return false;
    let credential: string | null;
    try {
      credential = readCredential(req.rawHeaders);
    } catch {
      // It names two keys, and is told so.
      return false;
    }
    if (credential === null) return !found.needsToken;
    // Without Postgres it goes on as a call, which is told so.
    return this.signedIn(req).then(
      (grant) => grant !== null,
      () => false,
    );
  }

  /**
   * What the token of a sign-in allows.
   *
   * @returns null for a request without one @throws GatewayError as KeyLookupService.find() does
   */
  async signedIn(req: Request): Promise<Grant | null> {
    const credential = readCredential(req.rawHeaders);
    const grant = credential === null ? null : await this.keys.find(credential, req);
    return grant?.kind === 'sign_in' ? grant : null;
  }

  /** Answers a request that takes() takes. */
  async respond(req: Request, res: Response, { endpoint, provider }: RequestTarget): Promise<void> {
    if (provider !== null && !this.isKnown(provider)) {
      this.reject(req, res, new GatewayError('provider_not_found'));
      return;
    }
    await this.run(req, res, endpoint, provider);
  }

  /**
   * Answers a request at the root.
   *
   * @param provider of the metadata, or null
   * @throws GatewayError not_found if no grant is on, or no module has added it
   */
  async atRoot(req: Request, res: Response, endpoint: string, provider: string | null = null): Promise<void> {
    if (this.grants.on.length === 0 || (provider !== null && !this.isKnown(provider)))
      throw new GatewayError('not_found');
    await this.run(req, res, endpoint, provider);
  }

  private async run(req: Request, res: Response, endpoint: string, provider: string | null): Promise<void> {
    const found = this.endpoints.get(`${req.method === 'HEAD' ? 'GET' : req.method} ${endpoint}`);
    if (found === undefined) throw new GatewayError('not_found');
    const reply = await this.attempt(() => found.respond(req, res, provider));
    if (reply instanceof GatewayError) this.reject(req, res, reply);
    else send(res, reply);
  }

  private async attempt(work: () => Promise<Reply> | Reply): Promise<Reply | GatewayError> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof GatewayError) return error;
      if (error instanceof OauthError) {
        const { code, description, status, retryAfter } = error;
        return { status, body: { error: code, error_description: description }, retryAfter };
      }
      this.logger.warn(`A request for a token failed: ${describeError(error)}`);
      const body = { error: 'temporarily_unavailable', error_description: 'Try again.' };
      return { status: 503, body, retryAfter: 5 };
    }
  }

  /** RFC 8414 3.2. It names the address that is configured, never one that a request claims. */
  private metadata(provider: string | null): Reply {
    const base = this.env.gatewayUrl ?? this.env.publicUrl;
    if (base === undefined) throw new GatewayError('not_found');
    const issuer = provider === null ? base : `${base}/p/${provider}`;
    const more = this.announced.flatMap((members) => Object.entries(members(issuer)));
    return {
      status: 200,
      body: {
        ...Object.fromEntries(more),
        issuer,
        token_endpoint: `${issuer}/oauth/token`,
        revocation_endpoint: `${issuer}/oauth/revoke`,
        response_types_supported: [],
        grant_types_supported: this.grants.on.map(({ type }) => type),
        token_endpoint_auth_methods_supported: ['none'],
        revocation_endpoint_auth_methods_supported: ['none'],
      },
    };
  }

  private async token(req: Request, res: Response): Promise<Reply> {
    const parameters = await readParameters(req, res);
    const type = parameters.required('grant_type');
    const grant = this.grants.on.find((one) => one.type === type);
    if (grant === undefined)
      throw new OauthError('unsupported_grant_type', 'This grant type is not supported here.');
    return { status: 200, body: await grant.token(parameters, this.addressOf(req)) };
  }

  private async exchangeAssertion(req: Request, res: Response): Promise<Reply> {
    const parameters = await readParameters(req, res);
    if (parameters.required('grant_type') !== JWT_BEARER || this.assertion === null)
      throw new OauthError('unsupported_grant_type', `This endpoint takes ${JWT_BEARER} only.`);
    return { status: 200, body: await this.assertion(parameters, this.addressOf(req)) };
  }

  private async revoke(req: Request, res: Response): Promise<Reply> {
    const token = (await readParameters(req, res)).required('token');
    await this.tokens.end(token, this.addressOf(req));
    return { status: 200, body: null };
  }

  private isKnown(name: string): boolean {
    return this.providers.find(name) !== null || this.routes.has(name);
  }

  /** Null if it is unknown. */
  addressOf({ socket, headers }: Request): string | null {
    return this.addresses.of(socket.remoteAddress, headers['x-forwarded-for'] as string | undefined);
  }

  private reject(req: Request, res: Response, error: GatewayError): void {
    const id = uuidV7();
    this.host.httpAdapter.rejections.addRequest(error, req, id);
    sendGatewayError(res, error, id, req.originalUrl);
  }
}

/**
 * Whether an endpoint may be one of ours, by its first characters: /oauth/…, /.well-known/…, /managed/…, /v1/oauth/…,
 * /v1/metrics, /v1/logs and /v1/traces.
 */
function mayBeOwn(endpoint: string): boolean {
  const first = endpoint.charCodeAt(1);
  if (first !== 0x76) return first === 0x6f || first === 0x2e || first === 0x6d;
  const fourth = endpoint.charCodeAt(4);
  // Not /v1/messages and /v1/models.
  if (fourth === 0x6d) return endpoint.charCodeAt(6) === 0x74;
  return fourth === 0x6f || fourth === 0x6c || fourth === 0x74;
}

function send(res: Response, { status, body, retryAfter, headers: more }: Reply): void {
  if (res.destroyed || res.headersSent) return;
  const text = body === null ? '' : JSON.stringify(body);
  // RFC 6749 5.1: no cache keeps a token.
  const headers: OutgoingHttpHeaders = {
    ...(body !== null && { 'content-type': 'application/json' }),
    // RFC 9110 8.6: of a 304, it would be that of the response that the client has.
    ...(status !== 304 && { 'content-length': Buffer.byteLength(text) }),
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'x-content-type-options': 'nosniff',
    ...(retryAfter != null && { 'retry-after': String(retryAfter) }),
    ...more,
  };
  res.writeHead(status, headers);
  res.end(text);
}
