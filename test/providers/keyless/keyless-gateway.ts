import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestGateway, type TestGateway } from '../../support/gateway.js';
import { type Asked, Clouds, jwt } from './clouds.js';

const MASTER_KEY = randomBytes(32).toString('base64');

/** Where each identity token may be sent. */
const HOSTS = {
  openai: 'https://auth.openai.com',
  anthropic: 'https://api.anthropic.com',
  aws: 'https://sts.eu-central-1.amazonaws.com',
  google: 'https://sts.googleapis.com',
  entra: 'https://login.microsoftonline.com',
} as const;
export type IdentityName = keyof typeof HOSTS;

export const PROVIDERS = {
  openai: 'https://api.openai.com',
  anthropic: 'https://api.anthropic.com',
  bedrock: 'https://bedrock-runtime.eu-central-1.amazonaws.com',
  vertex: 'https://aiplatform.googleapis.com',
  azure: 'https://my.openai.azure.com/openai',
} as const;

export const OPENAI = {
  auth: 'openai-federation',
  url: PROVIDERS.openai,
  auth_settings: { identity_token: 'openai', identity_provider_id: 'idp_1', service_account_id: 'sa_1' },
};
export const ANTHROPIC = {
  auth: 'anthropic-federation',
  url: PROVIDERS.anthropic,
  auth_settings: {
    identity_token: 'anthropic',
    federation_rule_id: 'fdrl_1',
    organization_id: '11111111-2222-4333-8444-555555555555',
    service_account_id: 'svac_1',
  },
};
export const ROLE = 'arn:aws:iam::111122223333:role/postern';
export const WEB_IDENTITY = {
  auth: 'aws-sigv4',
  url: PROVIDERS.bedrock,
  auth_settings: {
    credentials: 'web-identity',
    region: 'eu-central-1',
    identity_token: 'aws',
    role_arn: ROLE,
  },
};
export const AUDIENCE =
  '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/postern';
export const GOOGLE = {
  auth: 'google',
  url: PROVIDERS.vertex,
  auth_settings: { source: 'federation', identity_token: 'google', audience: AUDIENCE },
};
export const TOKEN_URL = 'https://login.microsoftonline.com/tenant/oauth2/v2.0/token';
export const ENTRA = {
  auth: 'oauth2',
  url: PROVIDERS.azure,
  auth_settings: {
    source: 'federation',
    identity_token: 'entra',
    token_url: TOKEN_URL,
    client_id: 'client-1',
    scope: 'https://cognitiveservices.azure.com/.default',
  },
};

export interface New {
  auth: string;
  url: string;
  auth_settings?: object;
  [more: string]: unknown;
}

/** Identity tokens in files, and the stand-ins of the clouds. */
export class KeylessGateway {
  private names = 0;

  private constructor(
    readonly clouds: Clouds,
    readonly gateway: TestGateway,
    readonly folder: string,
    private readonly key: string,
  ) {}

  static async start(
    variables: Record<string, string> = {},
    beside?: KeylessGateway,
  ): Promise<KeylessGateway> {
    const clouds = beside?.clouds ?? (await Clouds.start());
    const folder = beside?.folder ?? mkdtempSync(join(tmpdir(), 'postern-identity-'));
    const files = Object.entries(HOSTS).map(([name, host]) => `${name}=${join(folder, name)}@${host}`);
    const gateway = await startTestGateway(
      { MASTER_KEY, IDENTITY_TOKEN_FILES: files.join(','), ...variables },
      beside?.gateway.database,
    );
    const started = new KeylessGateway(
      clouds,
      gateway,
      folder,
      beside?.key ?? (await gateway.createKey({ endpoints: 'all' })),
    );
    if (beside === undefined) for (const name of Object.keys(HOSTS)) started.identify(name as IdentityName);
    return started;
  }

  /** Puts a new identity token into its file. */
  identify(name: IdentityName, token = jwt(name)): string {
    writeFileSync(join(this.folder, name), `${token}\n`);
    return token;
  }

  async add(fields: New): Promise<string> {
    const name = `keyless-${this.gateway.port}-${++this.names}`;
    await this.gateway.admin('POST', '/providers', { name, ...fields });
    return name;
  }

  /** Calls a provider. @returns the response, and what the provider got */
  async call(
    name: string,
    { path = '/v1/chat/completions', headers = {} }: { path?: string; headers?: Record<string, string> } = {},
  ): Promise<{ status: number; code: string | null; sent: Asked | undefined; response: Response }> {
    const before = this.clouds.asked.length;
    const response = await fetch(`${this.gateway.url}/p/${name}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.key}`, 'content-type': 'application/json', ...headers },
      body: '{"model":"m"}',
    });
    const sent = this.clouds.asked.slice(before).findLast((asked) => asked.path.endsWith(path));
    return { status: response.status, code: response.headers.get('x-gateway-error'), sent, response };
  }

  probe(name: string): Promise<{ ok: boolean; code: string; message: string }> {
    return this.gateway.admin('POST', `/providers/${name}/test`);
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    await this.clouds.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export const problemOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'nothing',
    (error: Error) => error.message,
  );
