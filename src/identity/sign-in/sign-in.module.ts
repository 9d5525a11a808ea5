import { Module } from '@nestjs/common';
import { KeysModule } from '../../keys/keys.module.js';
import { IssuedTokens } from '../oauth/issued-tokens.service.js';
import { OauthModule } from '../oauth/oauth.module.js';
import { ClaudeCode } from './claude-code.service.js';
import { DeviceAuthorization } from './device-authorization.service.js';
import { DeviceCodeGrant } from './device-code.grant.js';
import { DeviceController } from './device.controller.js';
import { DeviceRequests } from './device-requests.service.js';
import { ProviderCheck } from './provider-check.service.js';
import { RefreshTokenGrant } from './refresh-token.grant.js';
import { SignInAdminModule } from './sign-in-admin.module.js';
import { SignInController } from './sign-in.controller.js';
import { SignInMetrics } from './sign-in-metrics.js';
import { SignInRetention } from './sign-in-retention.service.js';
import { SignInSecrets } from './sign-in-secrets.service.js';
import { SignInTokens } from './sign-in-tokens.service.js';

/** Signs people in from a client (RFC 8628), and renews their tokens. */
@Module({
  imports: [OauthModule, SignInAdminModule, KeysModule],
  controllers: [SignInController, DeviceController],
  providers: [
    SignInSecrets,
    SignInTokens,
    ProviderCheck,
    DeviceRequests,
    DeviceAuthorization,
    DeviceCodeGrant,
    RefreshTokenGrant,
    ClaudeCode,
    SignInRetention,
    SignInMetrics
  ]
})
export class SignInModule {
  constructor(issued: IssuedTokens, tokens: SignInTokens) {
    issued.endSignIn = (refreshToken, by) => tokens.end(refreshToken, by);
  }
}
