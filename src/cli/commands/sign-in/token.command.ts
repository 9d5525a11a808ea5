import { Command } from 'commander';
import { CliError } from '../../cli-error.js';
import { action } from '../../session.js';
import type { StoredSignIn } from './credential-store.js';
import type { Tokens } from './oauth-client.js';
import { signInOf } from './sign-in.command.js';

/** `postern token` */
export function tokenCommand(): Command {
  return new Command('token')
    .description('print a token for calls, and nothing else; it is renewed when it is due')
    .argument('[url]', 'base URL of the gateway (default: the one signed in to last)')
    .addHelpText(
      'after',
      `
Agents run it as a helper: Codex as auth.command of a provider, Claude Code as apiKeyHelper, goose as auth.command.

Examples:
  postern token
  export OPENAI_API_KEY=$(postern token)`,
    )
    .action(action(async (_session, _options, url) => console.log(await currentToken(url))));
}

async function currentToken(given: string | undefined): Promise<string> {
  const { gatewayUrl } = await import('./oauth-client.js');
  const { CredentialStore } = await import('./credential-store.js');
  const store = new CredentialStore();
  const found = await store.find(given === undefined ? undefined : gatewayUrl(given));
  if (!isDue(found.signIn)) return found.signIn.accessToken;
  return store.alone(async () => {
    // Another process may have renewed it meanwhile.
    const { url, signIn } = await store.find(found.url);
    if (!isDue(signIn)) return signIn.accessToken;
    const renewed = await renew(url, signIn);
    if (renewed === null) return signIn.accessToken;
    await store.replace(url, renewed);
    return renewed.accessToken;
  });
}

/** Past half of its life: whoever asks keeps a token for some minutes. */
function isDue({ issuedAt, expiresAt }: StoredSignIn): boolean {
  return Date.now() > (Date.parse(issuedAt) + Date.parse(expiresAt)) / 2;
}

/** @returns null if the gateway cannot renew now, and the present token still works @throws CliError */
async function renew(url: string, signIn: StoredSignIn): Promise<StoredSignIn | null> {
  const { OauthResponseError, post } = await import('./oauth-client.js');
  const { tokenEndpoint: token, revocationEndpoint: revocation, refreshToken } = signIn;
  try {
    const parameters = { grant_type: 'refresh_token', refresh_token: refreshToken };
    return signInOf(await post<Tokens>(token, parameters), { token, revocation });
  } catch (error) {
    if (error instanceof OauthResponseError && error.code === 'invalid_grant')
      throw new CliError(`The sign-in to ${url} has ended. Run: postern sign-in ${url}`, { cause: error });
    if (error instanceof CliError && Date.parse(signIn.expiresAt) > Date.now()) return null;
    throw error;
  }
}
