import type { Settings } from '../../../config/settings.js';
import type { AuthSettings } from '../auth-kinds.js';
import { type TokenEndpoint, TokenError } from '../token-endpoint.js';
import { type Cloud, providerOriginProblem } from './cloud-hosts.js';
import type { IdentityTokens } from './identity-tokens.service.js';

/** What the exchange of the workload's identity for the credential of one provider needs. */
export interface Exchange {
  /** Name of the provider. */
  readonly provider: string;
  /** Scheme, host and port of the provider. */
  readonly origin: string;
  readonly settings: AuthSettings;
  readonly endpoint: TokenEndpoint;
  readonly identities: IdentityTokens;
  readonly env: ContainerSettings;
}

export type ContainerSettings = Pick<
  Settings,
  | 'awsContainerCredentialsRelativeUri'
  | 'awsContainerCredentialsFullUri'
  | 'awsContainerAuthorizationToken'
  | 'awsContainerAuthorizationTokenFile'
>;

/**
 * Checks at each exchange where the credential would be sent: a row that was written by hand may contain anything.
 *
 * @throws TokenError
 */
export function mustBeAt(cloud: Cloud, { origin }: Exchange): void {
  const problem = providerOriginProblem(cloud, origin);
  if (problem !== null) throw new TokenError(`the URL of this provider ${problem}`);
}
