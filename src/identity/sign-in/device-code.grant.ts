import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { OauthGrants, type TokenResponse } from '../oauth/oauth-grants.js';
import type { Parameters } from '../oauth/parameters.js';
import { SignInGrant } from './sign-in.grant.js';
import { SignInTokens } from './sign-in-tokens.service.js';

/** The device code grant (RFC 8628 3.4). */
@Injectable()
export class DeviceCodeGrant extends SignInGrant {
  readonly type = 'urn:ietf:params:oauth:grant-type:device_code';
  readonly name = 'device';

  constructor(
    private readonly tokens: SignInTokens,
    grants: OauthGrants,
    @InjectSettings() env: Settings,
  ) {
    super(env.signIn === 'on');
    grants.add(this);
  }

  protected async issue(parameters: Parameters, address: string | null): Promise<TokenResponse> {
    return this.tokens.redeem(parameters.required('device_code'), address);
  }
}
