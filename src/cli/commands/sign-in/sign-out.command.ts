import { Command } from 'commander';
import { action } from '../../session.js';

/** `postern sign-out` */
export function signOutCommand(): Command {
  return new Command('sign-out')
    .description('end the sign-in to a gateway, and delete its tokens')
    .argument('[url]', 'base URL of the gateway (default: the one signed in to last)')
    .addHelpText('after', '\nExample:\n  postern sign-out https://gateway.example.com')
    .action(
      action(async ({ out }, _options, given) => {
        const { gatewayUrl, post } = await import('./oauth-client.js');
        const { CredentialStore } = await import('./credential-store.js');
        const store = new CredentialStore();
        await store.alone(async () => {
          const wanted = given === undefined ? undefined : gatewayUrl(given);
          const { url, signIn } = await store.find(wanted);
          // Kept if the gateway cannot be reached: otherwise nobody could end it from here.
          await post(signIn.revocationEndpoint, { token: signIn.refreshToken });
          await store.save(url, null);
          out.result({ url }, () => `Signed out of ${url}.`);
        });
      }),
    );
}
