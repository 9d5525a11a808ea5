import { Injectable } from '@nestjs/common';
import { OauthEndpoints } from '../oauth/oauth-endpoints.service.js';
import { type OauthGrant, OauthGrants, type TokenResponse } from '../oauth/oauth-grants.js';
import { OauthError, type Parameters } from '../oauth/parameters.js';
import { ExchangeService } from './exchange.service.js';
import { TrustDirectory } from './trust-directory.service.js';

const JWT_TYPES = [
  'urn:ietf:params:oauth:token-type:jwt',
  'urn:ietf:params:oauth:token-type:id_token',
] as const;
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
/** The same for every reason: a caller learns nothing about the trusts of others. */
const NOT_ACCEPTED = 'The token was not accepted.';

/** Token exchange (RFC 8693): an identity token for a token of the key of a trust. */
@Injectable()
export class TokenExchangeGrant implements OauthGrant {
  readonly type = 'urn:ietf:params:oauth:grant-type:token-exchange';
  readonly name = 'exchange';
  readonly counts: ReadonlyMap<string, number>;

  constructor(
    private readonly exchanges: ExchangeService,
    private readonly directory: TrustDirectory,
    grants: OauthGrants,
    endpoints: OauthEndpoints,
  ) {
    this.counts = exchanges.counts;
    grants.add(this);
    endpoints.assertion = (parameters, address) => this.assertion(parameters, address);
  }

  get isOn(): boolean {
    return this.directory.isUsed;
  }

  async token(parameters: Parameters, address: string | null): Promise<TokenResponse> {
    const type = parameters.required('subject_token_type');
    if (!(JWT_TYPES as readonly string[]).includes(type))
      throw new OauthError('invalid_request', `subject_token_type must be ${JWT_TYPES.join(' or ')}.`);
    for (const name of ['actor_token', 'actor_token_type'])
      if (parameters.get(name) !== null)
        throw new OauthError('invalid_request', `The parameter ${name} is not supported.`);
    const requested = parameters.get('requested_token_type');
    if (requested !== null && requested !== ACCESS_TOKEN)
      throw new OauthError('invalid_request', `requested_token_type must be ${ACCESS_TOKEN}.`);
    const trust = parameters.required('trust');
    // RFC 8693 2.2.2 demands this code for a token that is not accepted.
    return this.exchange(trust, parameters.required('subject_token'), address, 'invalid_request');
  }

  /** RFC 7523 2.1, with the members that Anthropic's SDKs send; of these the rule names the trust. */
  private assertion(parameters: Parameters, address: string | null): Promise<TokenResponse> {
    const trust = parameters.required('federation_rule_id');
    return this.exchange(trust, parameters.required('assertion'), address, 'invalid_grant');
  }

  private async exchange(
    trust: string,
    token: string,
    address: string | null,
    code: 'invalid_request' | 'invalid_grant',
  ): Promise<TokenResponse> {
    const result = await this.exchanges.exchange(trust, token, address);
    switch (result.kind) {
      case 'issued':
        return {
          access_token: result.token,
          issued_token_type: ACCESS_TOKEN,
          token_type: 'Bearer',
          expires_in: result.expiresIn,
        };
      case 'rejected':
        throw new OauthError(code, NOT_ACCEPTED);
      case 'busy':
        throw new OauthError(
          'temporarily_unavailable',
          'Too many tokens at a time. Try again.',
          429,
          result.retryAfter,
        );
      case 'unavailable':
        throw new OauthError('temporarily_unavailable', 'No token can be issued now. Try again.', 503, 5);
    }
  }
}
