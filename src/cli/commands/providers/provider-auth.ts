import type { Command } from 'commander';
import type { ProviderView } from '../../../providers/providers.schema.js';
import { readSecret, readText } from '../../prompt.js';

/** Options for the settings of a way of authentication. */
export interface AuthOptions {
  region?: string;
  service?: string;
  accessKeyId?: string;
  tokenUrl?: string;
  clientId?: string;
  scope?: string;
}

/** Adds `--auth` and the options for its settings. */
export function addAuthOptions(command: Command): Command {
  return command
    .option(
      '--auth <style>',
      'how the secret is used: bearer, x-api-key, api-key, x-goog-api-key, aws-sigv4, google, oauth2; ' +
        'client: callers send their own credential',
    )
    .option('--region <region>', 'aws-sigv4: region, for example eu-central-1')
    .option('--service <service>', 'aws-sigv4: service that the signature is for (default: bedrock)')
    .option('--access-key-id <id>', 'aws-sigv4: ID of the access key, whose secret is the secret')
    .option('--token-url <url>', 'oauth2: where access tokens are requested')
    .option('--client-id <id>', 'oauth2: ID of the client, whose secret is the secret')
    .option('--scope <scope>', 'oauth2, google: scope of the access tokens');
}

/** The settings as a field of the admin API; empty without any. @param preset settings that options replace */
export function authSettingsOf(options: AuthOptions, preset: object = {}): object {
  const { region, service, accessKeyId, tokenUrl, clientId, scope } = options;
  const given = {
    region,
    service,
    scope,
    access_key_id: accessKeyId,
    token_url: tokenUrl,
    client_id: clientId,
  };
  const named = Object.entries({ ...preset, ...withoutAbsent(given) });
  return named.length === 0 ? {} : { auth_settings: Object.fromEntries(named) };
}

/** Reads a secret: a key file has several lines, which a prompt cannot take. */
export function readProviderSecret(prompt: string, auth: string | undefined): Promise<string> {
  return auth === 'google' ? readText('The JSON key file of the service account') : readSecret(prompt);
}

/** The settings as lines of `providers show`. */
export function authLines({ auth_settings: settings }: ProviderView): [name: string, value: string][] {
  return Object.entries(settings ?? {}).map(([name, value]) => [name.replaceAll('_', ' '), value]);
}

function withoutAbsent(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}
