import { Command } from 'commander';
import { action } from '../../session.js';

/** Errors of a gateway without sign-in: it has no such endpoint, and below /p/<name> the request is one without a key. */
const NOT_OFFERED = ['not_found', 'invalid_api_key'];

/** `postern sign-out` */
export function signOutCommand(): Command {
  return new Command('sign-out')
    .description('end the sign-in to a gateway, and delete its tokens')
    .argument('[url]', 'base URL of the gateway (default: the one signed in to last)')
    .addHelpText('after', '\nExample:\n  postern sign-out https://gateway.example.com')
    .action(
      action(async ({ out }, _options, given) => {
        const { gatewayUrl, OauthResponseError, post } = await import('./oauth-client.js');
        const { CredentialStore } = await import('./credential-store.js');
        const store = new CredentialStore();
        await store.alone(async () => {
          const wanted = given === undefined ? undefined : gatewayUrl(given);
          const { url, signIn } = await store.find(wanted);
          // Kept if the gateway cannot be reached: otherwise nobody could end it from here.
          const ended = await post(signIn.revocationEndpoint, { token: signIn.refreshToken }).then(
            () => true,
            (error: unknown) => {
              if (error instanceof OauthResponseError && NOT_OFFERED.includes(error.code)) return false;
              throw error;
            },
          );
          await store.save(url, null);
          out.result({ url, ended }, () =>
            ended
              ? `Signed out of ${url}.`
              : `Deleted the tokens of ${url} from this machine. People cannot sign in there any more, so it did not end them: they work until they expire, unless an administrator ends them.`,
          );
        });
      }),
    );
}
