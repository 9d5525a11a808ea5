import { Injectable } from '@nestjs/common';
import { InjectSettings } from '../../config/config.module.js';
import type { Settings } from '../../config/settings.js';
import { OauthGrants, type TokenResponse } from '../oauth/oauth-grants.js';
import type { Parameters } from '../oauth/parameters.js';
import { SignInGrant } from './sign-in.grant.js';
import { SignInTokens } from './sign-in-tokens.service.js';

/** The refresh token grant (RFC 6749 6). */
@Injectable()
export class RefreshTokenGrant extends SignInGrant {
  readonly type = 'refresh_token';
  readonly name = 'refresh';

  constructor(
    private readonly tokens: SignInTokens,
    grants: OauthGrants,
    @InjectSettings() env: Settings,
  ) {
    super(env.signIn === 'on');
    grants.add(this);
  }

  protected async issue(parameters: Parameters, address: string | null): Promise<TokenResponse> {
    return this.tokens.renew(parameters.required('refresh_token'), address);
  }
}
