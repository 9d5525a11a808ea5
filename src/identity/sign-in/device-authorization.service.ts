import { Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { ClientAddress } from '../../platform/client-address.js';
import { OauthEndpoints, type Reply } from '../oauth/oauth-endpoints.service.js';
import { readParameters } from '../oauth/parameters.js';
import { DeviceRequests, POLL_SECONDS, REQUEST_SECONDS } from './device-requests.service.js';

export const DEVICE_AUTHORIZATION = '/oauth/device_authorization';
export const DEVICE_PAGE = '/device';

const MAX_SURFACE = 64;
const MAX_USER_AGENT = 300;
const UNKNOWN = 'unknown';
/** Characters that people do not see, or that break a line. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** The device authorization endpoint (RFC 8628 3.1), where the sign-in of a client begins. */
@Injectable()
export class DeviceAuthorization {
  private readonly kept: ClientAddress;

  constructor(
    private readonly requests: DeviceRequests,
    private readonly endpoints: OauthEndpoints,
    @InjectSettings() private readonly env: Settings,
  ) {
    this.kept = new ClientAddress(env.trustedProxies, env.requestLogClient);
    if (env.signIn === 'on')
      endpoints.add(`POST ${DEVICE_AUTHORIZATION}`, (req, res) => this.start(req, res), {
        announced: (issuer) => ({ device_authorization_endpoint: issuer + DEVICE_AUTHORIZATION }),
      });
  }

  private async start(req: Request, res: Response): Promise<Reply> {
    const parameters = await readParameters(req, res);
    const surface = (parameters.get('surface') ?? '').replace(UNPRINTABLE, '').slice(0, MAX_SURFACE);
    const { deviceCode, userCode } = await this.requests.start({
      surface: surface.trim() || UNKNOWN,
      address: this.endpoints.addressOf(req),
      keptAddress: this.kept.of(
        req.socket.remoteAddress,
        req.headers['x-forwarded-for'] as string | undefined,
      ),
      userAgent: this.userAgentOf(req),
    });
    return {
      status: 200,
      body: {
        device_code: deviceCode,
        user_code: userCode,
        verification_uri: this.env.publicUrl! + DEVICE_PAGE,
        expires_in: REQUEST_SECONDS,
        interval: POLL_SECONDS,
      },
    };
  }

  private userAgentOf({ headers }: Request): string | null {
    if (this.env.requestLogClient === 'none') return null;
    return headers['user-agent']?.replace(UNPRINTABLE, '').slice(0, MAX_USER_AGENT) ?? null;
  }
}
