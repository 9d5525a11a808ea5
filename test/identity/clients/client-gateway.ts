import { OpenIdProvider } from '../../admin/openid-provider.js';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { unusedPort } from '../../support/unused-port.js';
import { signInSettings, USERS } from '../device-flow.js';
import { ModelProvider } from './model-provider.js';

/** A gateway at which jane signs in, between a real OpenID provider and a stand-in for Anthropic and OpenAI. */
export interface ClientGateway {
  postern: TestGateway;
  issuer: OpenIdProvider;
  provider: ModelProvider;
  /** What clients have as their base URL. */
  base: string;
  stop(): Promise<void>;
}

/** @param team members of the team, besides its `sign_in` */
export async function startClientGateway(team: object = {}): Promise<ClientGateway> {
  const provider = await ModelProvider.start();
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  const issuer = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  const settings = { PROVIDER_URL: provider.url, PROVIDER_AUTH: 'x-api-key' };
  const postern = await startTestGateway({ ...settings, ...signInSettings(issuer, publicUrl) });
  await postern.admin('PATCH', '/teams/default', { sign_in: { token_minutes: 5 }, ...team });
  return {
    ...{ postern, issuer, provider, base: `${postern.url}/p/default` },
    stop: async () => {
      await postern.stop();
      await issuer.stop();
      await provider.stop();
    },
  };
}
