import type { Command } from 'commander';
import type { ProviderView } from '../../../providers/providers.schema.js';
import { type AuthSettings, isKeyless } from '../../../providers/credentials/auth-kinds.js';
import { readSecret, readText } from '../../prompt.js';

/** Options for the settings of a way of authentication. */
export interface AuthOptions {
  region?: string;
  service?: string;
  accessKeyId?: string;
  credentials?: string;
  source?: string;
  identityToken?: string;
  roleArn?: string;
  audience?: string;
  serviceAccount?: string;
  identityProviderId?: string;
  federationRuleId?: string;
  organizationId?: string;
  serviceAccountId?: string;
  workspaceId?: string;
  tokenUrl?: string;
  clientId?: string;
  scope?: string;
}

const SETTINGS = {
  region: 'region',
  service: 'service',
  accessKeyId: 'access_key_id',
  credentials: 'credentials',
  source: 'source',
  identityToken: 'identity_token',
  roleArn: 'role_arn',
  audience: 'audience',
  serviceAccount: 'service_account',
  identityProviderId: 'identity_provider_id',
  federationRuleId: 'federation_rule_id',
  organizationId: 'organization_id',
  serviceAccountId: 'service_account_id',
  workspaceId: 'workspace_id',
  tokenUrl: 'token_url',
  clientId: 'client_id',
  scope: 'scope',
} as const satisfies Record<keyof AuthOptions, keyof AuthSettings>;

/** Adds `--auth` and the options for its settings. */
export function addAuthOptions(command: Command): Command {
  return command
    .option(
      '--auth <style>',
      'how the secret is used: bearer, x-api-key, api-key, x-goog-api-key, aws-sigv4, google, oauth2; ' +
        'openai-federation, anthropic-federation: exchange an identity token; client: callers send their own credential',
    )
    .option('--region <region>', 'aws-sigv4: region, for example eu-central-1')
    .option('--service <service>', 'aws-sigv4: service that the signature is for (default: bedrock)')
    .option('--access-key-id <id>', 'aws-sigv4: ID of the access key, whose secret is the secret')
    .option('--credentials <from>', 'aws-sigv4 without a secret: web-identity, container or instance')
    .option('--source <from>', 'google, oauth2 without a secret: federation or metadata')
    .option('--identity-token <name>', 'without a secret: name of the identity token in IDENTITY_TOKEN_FILES')
    .option('--role-arn <arn>', 'web-identity: IAM role to assume')
    .option('--audience <name>', 'google federation: full name of the workload identity pool provider')
    .option('--service-account <email>', 'google without a secret: service account to act as')
    .option('--identity-provider-id <id>', 'openai-federation: workload identity provider')
    .option('--federation-rule-id <id>', 'anthropic-federation: federation rule')
    .option('--organization-id <id>', 'anthropic-federation: organization')
    .option('--service-account-id <id>', 'openai-federation, anthropic-federation: service account')
    .option('--workspace-id <id>', 'anthropic-federation: workspace')
    .option('--token-url <url>', 'oauth2: where access tokens are requested')
    .option('--client-id <id>', 'oauth2: ID of the client, whose secret is the secret')
    .option('--scope <scope>', 'oauth2, google: scope of the access tokens');
}

/** The settings as a field of the admin API; empty without any. @param preset settings that options replace */
export function authSettingsOf(
  options: AuthOptions,
  preset: AuthSettings = {},
): { auth_settings?: AuthSettings } {
  const given = Object.entries(SETTINGS)
    .map(([option, name]) => [name, options[option as keyof AuthOptions]] as const)
    .filter(([, value]) => value !== undefined);
  const settings: AuthSettings = { ...preset, ...Object.fromEntries(given) };
  return Object.keys(settings).length === 0 ? {} : { auth_settings: settings };
}

/** False if callers send their own credential, or the identity of the gateway takes the place of a secret. */
export function takesSecret(auth: string | undefined, settings: AuthSettings | undefined): boolean {
  return auth !== 'client' && !isKeyless(auth ?? '', settings);
}

/** Reads a secret: a key file has several lines, which a prompt cannot take. */
export function readProviderSecret(prompt: string, auth: string | undefined): Promise<string> {
  return auth === 'google' ? readText('The JSON key file of the service account') : readSecret(prompt);
}

/** The settings as lines of `providers show`. */
export function authLines({ auth_settings: settings }: ProviderView): [name: string, value: string][] {
  return Object.entries(settings ?? {}).map(([name, value]) => [name.replaceAll('_', ' '), value]);
}
