import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { hasKeyFormat, hasSecretFormat, REFRESH_TOKEN_PREFIX } from '../../../platform/api-key.js';
import { CliError } from '../../cli-error.js';
import type { Output } from '../../output.js';
import { action } from '../../session.js';
import { text } from '../../table.js';
import type { StoredSignIn } from './credential-store.js';
import type { Endpoints, Tokens } from './oauth-client.js';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const SLOWER_S = 5;

interface Started {
  device_code: string;
  user_code: string;
  verification_uri: string;
  expires_in: number;
  interval?: number;
}

/** `postern sign-in` */
export function signInCommand(): Command {
  return new Command('sign-in')
    .description('sign in to a gateway by single sign-on, for `postern token`')
    .argument('<url>', 'base URL of the gateway, as clients have it')
    .addHelpText(
      'after',
      `
No admin token is needed. The tokens are stored in postern/credentials.json below $XDG_CONFIG_HOME or ~/.config, which only
you can read. A former sign-in of yours to the same URL is ended.

Example:
  postern sign-in https://gateway.example.com`,
    )
    .action(action((session, _, url) => signIn(url, session.out)));
}

async function signIn(given: string, out: Output): Promise<void> {
  const { discover, gatewayUrl, post } = await import('./oauth-client.js');
  const { CredentialStore } = await import('./credential-store.js');
  const url = gatewayUrl(given);
  const endpoints = await discover(url);
  const started = await post<Started>(endpoints.device, { surface: 'postern' });
  // Also with --quiet and --json: without it nobody can go on.
  console.error(`Open ${pageOf(started)} and type the code ${text(String(started.user_code))}`);
  const tokens = await waitForTokens(endpoints, started);
  const signIn = signInOf(tokens, endpoints);
  const store = new CredentialStore();
  await store.alone(async () => {
    const former = await store.get(url);
    await store.save(url, signIn);
    if (former !== undefined) await endFormer(url, former);
  });
  const who = signIn.email === null ? '' : ` as ${text(signIn.email)}`;
  out.result({ url, email: signIn.email }, () => `Signed in to ${url}${who}.`);
}

/** Encoded, so that no control characters reach the terminal. @throws CliError */
function pageOf({ verification_uri: given }: Started): string {
  const page = URL.canParse(given) ? new URL(given) : null;
  if (page === null || !['https:', 'http:'].includes(page.protocol))
    throw new CliError('The page to sign in at, which the gateway names, has no http or https URL.');
  return page.href;
}

/** Once it is replaced, `sign-out` could not end it any more, and whoever has copied its tokens would keep them for weeks. */
async function endFormer(url: string, { revocationEndpoint, refreshToken }: StoredSignIn): Promise<void> {
  const { post } = await import('./oauth-client.js');
  await post(revocationEndpoint, { token: refreshToken }).catch((error: unknown) => {
    if (!(error instanceof CliError)) throw error;
    console.error(
      `The former sign-in to ${url} could not be ended, so it may go on until an administrator ends it: ${error.message}`,
    );
  });
}

async function waitForTokens(endpoints: Endpoints, started: Started): Promise<Tokens> {
  const { OauthResponseError, post } = await import('./oauth-client.js');
  const { UnreachableError } = await import('../../api.js');
  const until = Date.now() + started.expires_in * 1_000;
  let seconds = started.interval ?? 5;
  while (Date.now() < until) {
    await sleep(seconds * 1_000);
    try {
      return await post<Tokens>(endpoints.token, {
        grant_type: DEVICE_CODE,
        device_code: started.device_code,
      });
    } catch (error) {
      // RFC 8628 3.5: also after a connection that failed it goes on, slower.
      const code = error instanceof OauthResponseError ? error.code : null;
      if (code === 'access_denied')
        throw new CliError('The sign-in was denied in the browser.', { cause: error });
      if (code === 'expired_token') break;
      const isWait = code === 'authorization_pending' || code === 'temporarily_unavailable';
      if (code === 'slow_down' || error instanceof UnreachableError) seconds += SLOWER_S;
      else if (!isWait) throw error;
    }
  }
  throw new CliError('Nobody confirmed the sign-in in time. Run the command again.');
}

/** What is stored of a response. @throws CliError if its tokens are not those of a gateway: `postern token` prints one as it is */
export function signInOf(tokens: Tokens, endpoints: Pick<Endpoints, 'token' | 'revocation'>): StoredSignIn {
  const [access, refresh] = [String(tokens.access_token), String(tokens.refresh_token)];
  if (!hasKeyFormat(access) || !hasSecretFormat(refresh, REFRESH_TOKEN_PREFIX))
    throw new CliError('The gateway responded with tokens that are not of the form ptn_… and ptr_….');
  const now = Date.now();
  return {
    accessToken: access,
    refreshToken: refresh,
    issuedAt: new Date(now).toISOString(),
    expiresAt: new Date(now + tokens.expires_in * 1_000).toISOString(),
    tokenEndpoint: endpoints.token,
    revocationEndpoint: endpoints.revocation,
    email: typeof tokens.email === 'string' ? tokens.email : null,
  };
}
