import type { OutgoingHttpHeaders } from 'node:http';
import { Injectable, Logger } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { Request, Response } from 'express';
import { readCredential } from '../../auth/credential.js';
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

interface Reply {
  status: number;
  body: object | null;
  retryAfter?: number | null;
}

type Endpoint = (req: Request, res: Response, provider: string | null) => Promise<Reply> | Reply;

/**
 * Endpoints of RFC 6749, 7009 and 8414: at the root of the gateway, and below `/p/<provider>`, where a client finds them that
 * has one base URL. There, and below /v1, they take only requests without a gateway key, which would get 401.
 */
@Injectable()
export class OauthEndpoints {
  /** What answers `/v1/oauth/token`; null: it is not answered here. */
  assertion: AssertionGrant | null = null;
  private readonly logger = new Logger('Tokens');
  private readonly addresses: ClientAddress;
  private readonly endpoints = new Map<string, Endpoint>([
    [`GET ${METADATA}`, (_req, _res, provider) => this.metadata(provider)],
    ['POST /oauth/token', (req, res) => this.token(req, res)],
    ['POST /oauth/revoke', (req, res) => this.revoke(req, res)],
    ['POST /v1/oauth/token', (req, res) => this.exchangeAssertion(req, res)],
  ]);

  constructor(
    @InjectSettings() private readonly env: Settings,
    private readonly host: HttpAdapterHost<GatewayHttpAdapter>,
    private readonly grants: OauthGrants,
    private readonly tokens: IssuedTokens,
    private readonly providers: ProvidersService,
    private readonly routes: RoutesService,
  ) {
    this.addresses = new ClientAddress(env.trustedProxies, 'full');
  }

  /** False: a request with this target goes on as a call. Decided by one character of the path of most calls. */
  takes(req: Request, { endpoint }: RequestTarget): boolean {
    const first = endpoint.charCodeAt(1);
    // /oauth/…, /.well-known/… or /v1/o…
    if (first !== 0x6f && first !== 0x2e && (first !== 0x76 || endpoint.charCodeAt(4) !== 0x6f)) return false;
    if (!this.endpoints.has(`${req.method} ${endpoint}`) || this.grants.on.length === 0) return false;
    try {
      return readCredential(req.rawHeaders) === null;
    } catch {
      // It names two keys, and is told so.
      return false;
    }
  }

  /** Answers a request that takes() takes. */
  async answer(req: Request, res: Response, { endpoint, provider }: RequestTarget): Promise<void> {
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
   * @throws GatewayError not_found if no grant is on
   */
  async atRoot(req: Request, res: Response, endpoint: string, provider: string | null = null): Promise<void> {
    if (this.grants.on.length === 0 || (provider !== null && !this.isKnown(provider)))
      throw new GatewayError('not_found');
    await this.run(req, res, endpoint, provider);
  }

  private async run(req: Request, res: Response, endpoint: string, provider: string | null): Promise<void> {
    const answer = this.endpoints.get(`${req.method === 'HEAD' ? 'GET' : req.method} ${endpoint}`)!;
    const reply = await this.attempt(() => answer(req, res, provider));
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
    return {
      status: 200,
      body: {
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
    return this.providers.find(name) !== null || this.routes.of(name, null) !== null;
  }

  private addressOf({ socket, headers }: Request): string | null {
    return this.addresses.of(socket.remoteAddress, headers['x-forwarded-for'] as string | undefined);
  }

  private reject(req: Request, res: Response, error: GatewayError): void {
    const id = uuidV7();
    this.host.httpAdapter.rejections.addRequest(error, req, id);
    sendGatewayError(res, error, id, req.originalUrl);
  }
}

function send(res: Response, { status, body, retryAfter }: Reply): void {
  if (res.destroyed || res.headersSent) return;
  const text = body === null ? '' : JSON.stringify(body);
  // RFC 6749 5.1: no cache keeps a token.
  const headers: OutgoingHttpHeaders = {
    ...(body !== null && { 'content-type': 'application/json' }),
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'x-content-type-options': 'nosniff',
    ...(retryAfter != null && { 'retry-after': String(retryAfter) }),
  };
  res.writeHead(status, headers);
  res.end(text);
}
