import { Module } from '@nestjs/common';
import { OauthModule } from '../oauth/oauth.module.js';
import { TokenExchangeGrant } from './token-exchange.grant.js';
import { TrustsAdminModule } from './trusts-admin.module.js';
import { TrustMetrics } from './trust-metrics.js';

/** The exchange of identity tokens, at the endpoints for tokens. */
@Module({ imports: [OauthModule, TrustsAdminModule], providers: [TokenExchangeGrant, TrustMetrics] })
export class TrustsModule {}
