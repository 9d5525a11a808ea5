import { hash } from 'node:crypto';
import { authorizationOf, signingKey } from '../../../src/providers/credentials/sigv4.js';
import { type Asked, assumed, bearer, formOf, jsonOf } from './clouds.js';
import {
  ANTHROPIC,
  AUDIENCE,
  ENTRA,
  GOOGLE,
  KeylessGateway,
  OPENAI,
  PROVIDERS,
  ROLE,
  TOKEN_URL,
  WEB_IDENTITY,
} from './keyless-gateway.js';

const METADATA = '169.254.169.254';
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();
const keys = () => ({
  id: 'ASIAIOSFODNN7EXAMPLE',
  secret: 'aJalrXUtnFEMI/K7MDENGbPxRfiCYzEXAMPLEKEY',
  token: 'AQoDYXdzEE0a8ANXXXXXXXXNO1ewxE5TijQyp+IEXAMPLE',
  expiration: inAnHour(),
});

let keyless: KeylessGateway;
let onAws: KeylessGateway;
let onGoogle: KeylessGateway;
let onAzure: KeylessGateway;

beforeAll(async () => {
  keyless = await KeylessGateway.start();
  onAws = await KeylessGateway.start(
    {
      CLOUD_IDENTITY: 'aws',
      AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.23/v1/credentials',
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: `${keyless.folder}/aws`,
    },
    keyless,
  );
  onGoogle = await KeylessGateway.start({ CLOUD_IDENTITY: 'google' }, keyless);
  onAzure = await KeylessGateway.start({ CLOUD_IDENTITY: 'azure' }, keyless);
});
afterAll(async () => {
  for (const one of [onAws, onGoogle, onAzure]) await one.gateway.stop();
  await keyless.stop();
});
beforeEach(() => {
  keyless.clouds.asked.length = 0;
  keyless.clouds.hosts.clear();
});

/** Whether the request has the signature that AWS would compute from it. */
function isSigned({ method, path, headers, body }: Asked, secret: string): boolean {
  const authorization = headers.authorization!;
  const [, id, scopeOf, names] = /Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+)/.exec(authorization)!;
  const [day, region, service] = scopeOf!.split('/') as [string, string, string];
  const scope = { day, region, service };
  const signed = names!.split(';').flatMap((name) => [name, String(headers[name])]);
  const request = { method, target: path, headers: signed, payloadHash: hash('sha256', body, 'hex') };
  const date = String(headers['x-amz-date']);
  return authorization === authorizationOf(request, id!, signingKey(secret, scope), scope, date);
}

describe('openai-federation', () => {
  it('exchanges the identity token as OpenAI documents, and sends the token that it gets', async () => {
    const { clouds } = keyless;
    clouds.hosts.set('auth.openai.com', () => bearer('openai-access-token'));
    const token = keyless.identify('openai');
    const name = await keyless.add(OPENAI);
    for (let i = 0; i < 3; i++) {
      const { status, sent } = await keyless.call(name);
      expect([status, sent!.host, sent!.headers.authorization]).toEqual([
        200,
        'api.openai.com',
        'Bearer openai-access-token',
      ]);
    }
    const exchanges = clouds.at('auth.openai.com');
    expect(exchanges).toHaveLength(1);
    expect(exchanges[0]).toMatchObject({ method: 'POST', path: '/oauth/token' });
    expect(exchanges[0]!.headers).toMatchObject({ 'content-type': 'application/json' });
    expect(exchanges[0]!.headers.authorization).toBeUndefined();
    expect(jsonOf(exchanges[0]!)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: token,
      identity_provider_id: 'idp_1',
      service_account_id: 'sa_1',
    });
  });
});

it.each([401, 403])(
  'says in a test that the provider rejected the token that was issued (%s)',
  async (status) => {
    keyless.clouds.hosts.set('auth.openai.com', () => bearer('openai-access-token'));
    keyless.clouds.hosts.set('api.openai.com', () => ({ status }));
    expect(await keyless.probe(await keyless.add(OPENAI))).toMatchObject({
      ok: false,
      code: 'unauthorized',
      message: expect.stringContaining('A token was issued, but the provider rejected it') as string,
    });
  },
);

describe('anthropic-federation', () => {
  const exchanged = () =>
    keyless.clouds.at('api.anthropic.com').filter(({ path }) => path === '/v1/oauth/token');
  beforeEach(() =>
    keyless.clouds.hosts.set('api.anthropic.com', ({ path }) =>
      path === '/v1/oauth/token' ? bearer('sk-ant-oat01-token', 600) : {},
    ),
  );

  it('exchanges the identity token as Anthropic documents', async () => {
    const token = keyless.identify('anthropic');
    const name = await keyless.add({
      ...ANTHROPIC,
      auth_settings: { ...ANTHROPIC.auth_settings, workspace_id: 'wrkspc_1' },
    });
    const { status, sent } = await keyless.call(name, { path: '/v1/messages' });
    expect([status, sent!.headers.authorization, sent!.headers['x-api-key']]).toEqual([
      200,
      'Bearer sk-ant-oat01-token',
      undefined,
    ]);
    const [exchange] = exchanged();
    expect(exchange!.headers).toMatchObject({
      'content-type': 'application/json',
      'anthropic-beta': 'oauth-2025-04-20,oidc-federation-2026-04-01',
    });
    expect(jsonOf(exchange!)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: token,
      federation_rule_id: 'fdrl_1',
      organization_id: '11111111-2222-4333-8444-555555555555',
      service_account_id: 'svac_1',
      workspace_id: 'wrkspc_1',
    });
  });

  it('sends no workspace_id without one', async () => {
    const name = await keyless.add(ANTHROPIC);
    expect((await keyless.call(name)).status).toBe(200);
    expect(jsonOf(exchanged()[0]!)).not.toHaveProperty('workspace_id');
  });

  it.each([
    [undefined, 'oauth-2025-04-20'],
    ['context-1m-2025-08-07', 'context-1m-2025-08-07,oauth-2025-04-20'],
    ['a, oauth-2025-04-20', 'a, oauth-2025-04-20'],
  ])('names the OAuth token in anthropic-beta of calls, once (%s)', async (given, expected) => {
    const name = await keyless.add(ANTHROPIC);
    const headers: Record<string, string> = given === undefined ? {} : { 'anthropic-beta': given };
    const { sent } = await keyless.call(name, { path: '/v1/messages', headers });
    expect(sent!.headers['anthropic-beta']).toBe(expected);
  });

  it('has both headers in a test of the provider', async () => {
    const name = await keyless.add(ANTHROPIC);
    expect(await keyless.probe(name)).toMatchObject({ ok: true });
    expect(keyless.clouds.at('api.anthropic.com').at(-1)).toMatchObject({
      path: '/v1/models',
      headers: { 'anthropic-beta': 'oauth-2025-04-20', 'anthropic-version': '2023-06-01' },
    });
  });
});

describe('aws-sigv4', () => {
  it('assumes a role with the identity token, and signs with the keys that it gets', async () => {
    const issued = keys();
    keyless.clouds.hosts.set('sts.eu-central-1.amazonaws.com', () => assumed(issued));
    const token = keyless.identify('aws');
    const name = await keyless.add(WEB_IDENTITY);
    for (let i = 0; i < 2; i++) {
      const { status, sent } = await keyless.call(name, { path: '/model/m/converse' });
      expect([status, sent!.headers['x-amz-security-token']]).toEqual([200, issued.token]);
      expect(sent!.headers.authorization).toContain(`Credential=${issued.id}/`);
      expect(isSigned(sent!, issued.secret)).toBe(true);
    }
    const exchanges = keyless.clouds.at('sts.eu-central-1.amazonaws.com');
    expect(exchanges).toHaveLength(1);
    expect(exchanges[0]).toMatchObject({ method: 'POST', path: '/' });
    expect(exchanges[0]!.headers).toMatchObject({
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'text/xml',
    });
    expect(exchanges[0]!.headers.authorization).toBeUndefined();
    expect(formOf(exchanges[0]!)).toEqual({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: ROLE,
      RoleSessionName: `postern-${name}`,
      WebIdentityToken: token,
    });
  });

  it('asks for the role with the bytes that the AWS SDK sends', async () => {
    // Recorded from fromWebToken() of @aws-sdk/credential-provider-web-identity 3.972.91, with this session name.
    const recorded = (name: string) =>
      `Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A111122223333%3Arole%2Fpostern&RoleSessionName=postern-${name}&WebIdentityToken=a.b-_.c`;
    keyless.identify('aws', 'a.b-_.c');
    const name = await keyless.add(WEB_IDENTITY);
    await keyless.probe(name);
    expect(keyless.clouds.at('sts.eu-central-1.amazonaws.com')[0]!.body).toBe(recorded(name));
  });

  it('gets keys for a pod from EKS Pod Identity, with the authorization token of its file', async () => {
    const issued = keys();
    const token = keyless.identify('aws');
    keyless.clouds.hosts.set('169.254.170.23', () => ({
      body: {
        AccessKeyId: issued.id,
        SecretAccessKey: issued.secret,
        Token: issued.token,
        Expiration: issued.expiration,
      },
    }));
    const name = await onAws.add({
      ...WEB_IDENTITY,
      auth_settings: { credentials: 'container', region: 'eu-central-1' },
    });
    const { status, sent } = await onAws.call(name);
    expect([status, isSigned(sent!, issued.secret)]).toEqual([200, true]);
    expect(keyless.clouds.at('169.254.170.23')).toMatchObject([
      { method: 'GET', path: '/v1/credentials', headers: { authorization: token } },
    ]);
  });

  it('gets keys for a task from ECS', async () => {
    const issued = keys();
    keyless.clouds.hosts.set('169.254.170.2', () => ({
      body: {
        AccessKeyId: issued.id,
        SecretAccessKey: issued.secret,
        Token: issued.token,
        Expiration: issued.expiration,
      },
    }));
    const onEcs = await KeylessGateway.start(
      { CLOUD_IDENTITY: 'aws', AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: '/v2/credentials/abc' },
      keyless,
    );
    const name = await onEcs.add({
      ...WEB_IDENTITY,
      auth_settings: { credentials: 'container', region: 'eu-central-1' },
    });
    const { status, sent } = await onEcs.call(name);
    expect([status, isSigned(sent!, issued.secret)]).toEqual([200, true]);
    expect(keyless.clouds.at('169.254.170.2')).toMatchObject([
      { method: 'GET', path: '/v2/credentials/abc' },
    ]);
    expect(keyless.clouds.at('169.254.170.2')[0]!.headers.authorization).toBeUndefined();
    await onEcs.gateway.stop();
  });

  it('gets keys for a machine from version 2 of its metadata service', async () => {
    const issued = keys();
    keyless.clouds.hosts.set(METADATA, ({ method, path }) => {
      if (path === '/latest/api/token') return { body: method === 'PUT' ? 'session==' : '' };
      if (path === '/latest/meta-data/iam/security-credentials/') return { body: 'postern-role' };
      return {
        body: {
          Code: 'Success',
          Type: 'AWS-HMAC',
          AccessKeyId: issued.id,
          SecretAccessKey: issued.secret,
          Token: issued.token,
          Expiration: issued.expiration,
        },
      };
    });
    const name = await onAws.add({
      ...WEB_IDENTITY,
      auth_settings: { credentials: 'instance', region: 'eu-central-1', service: 'bedrock' },
    });
    const { status, sent } = await onAws.call(name);
    expect([status, isSigned(sent!, issued.secret)]).toEqual([200, true]);
    const session = { 'x-aws-ec2-metadata-token': 'session==' };
    expect(keyless.clouds.at(METADATA)).toMatchObject([
      { method: 'PUT', path: '/latest/api/token', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '60' } },
      { method: 'GET', path: '/latest/meta-data/iam/security-credentials/', headers: session },
      { method: 'GET', path: '/latest/meta-data/iam/security-credentials/postern-role', headers: session },
    ]);
  });

  it.each([
    ['ExpiredTokenException', true],
    ['com.amazon.coral.service#ExpiredTokenException:http://internal.amazon.com/coral/', true],
    ['UnrecognizedClientException', true],
    ['AccessDeniedException', false],
  ])('gets new keys for the next call after an error %s: %s', async (type, renews) => {
    let issued = 0;
    keyless.clouds.hosts.set('sts.eu-central-1.amazonaws.com', () =>
      assumed({ ...keys(), token: `session-${++issued}` }),
    );
    keyless.clouds.hosts.set('bedrock-runtime.eu-central-1.amazonaws.com', ({ headers }) =>
      headers['x-amz-security-token'] === 'session-1'
        ? { status: 403, headers: { 'x-amzn-errortype': type }, body: { message: 'no' } }
        : {},
    );
    const name = await keyless.add(WEB_IDENTITY);
    expect((await keyless.call(name)).status).toBe(403);
    const { status, sent } = await keyless.call(name);
    expect([status, sent!.headers['x-amz-security-token'], issued]).toEqual(
      renews ? [200, 'session-2', 2] : [403, 'session-1', 1],
    );
  });
});

describe('google', () => {
  it('exchanges the identity token at the Security Token Service', async () => {
    keyless.clouds.hosts.set('sts.googleapis.com', () => bearer('federated'));
    const token = keyless.identify('google');
    const { status, sent } = await keyless.call(await keyless.add(GOOGLE));
    expect([status, sent!.host, sent!.headers.authorization]).toEqual([
      200,
      'aiplatform.googleapis.com',
      'Bearer federated',
    ]);
    const [exchange] = keyless.clouds.at('sts.googleapis.com');
    expect(exchange).toMatchObject({ method: 'POST', path: '/v1/token' });
    expect(formOf(exchange!)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: AUDIENCE,
      scope: 'https://www.googleapis.com/auth/cloud-platform',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    });
  });

  it('acts as a service account with a second exchange', async () => {
    const account = 'postern@p.iam.gserviceaccount.com';
    keyless.clouds.hosts.set('sts.googleapis.com', () => bearer('federated'));
    keyless.clouds.hosts.set('iamcredentials.googleapis.com', () => ({
      body: { accessToken: 'of-the-account', expireTime: inAnHour() },
    }));
    const settings = { ...GOOGLE.auth_settings, service_account: account, scope: 'scope-a scope-b' };
    const { sent } = await keyless.call(await keyless.add({ ...GOOGLE, auth_settings: settings }));
    expect(sent!.headers.authorization).toBe('Bearer of-the-account');
    expect(formOf(keyless.clouds.at('sts.googleapis.com')[0]!)).toMatchObject({
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    });
    const [second] = keyless.clouds.at('iamcredentials.googleapis.com');
    expect(second).toMatchObject({
      method: 'POST',
      path: `/v1/projects/-/serviceAccounts/${encodeURIComponent(account)}:generateAccessToken`,
      headers: { authorization: 'Bearer federated', 'content-type': 'application/json' },
    });
    expect(jsonOf(second!)).toEqual({ scope: ['scope-a', 'scope-b'], lifetime: '3600s' });
  });

  it.each([
    [{}, '/computeMetadata/v1/instance/service-accounts/default/token'],
    [
      { service_account: 'a@p.iam.gserviceaccount.com', scope: 'x y' },
      '/computeMetadata/v1/instance/service-accounts/a%40p.iam.gserviceaccount.com/token?scopes=x%2Cy',
    ],
  ])('asks the metadata service with %j', async (settings, path) => {
    keyless.clouds.hosts.set(METADATA, () => bearer('of-the-machine'));
    const name = await onGoogle.add({ ...GOOGLE, auth_settings: { source: 'metadata', ...settings } });
    expect((await onGoogle.call(name)).sent!.headers.authorization).toBe('Bearer of-the-machine');
    expect(keyless.clouds.at(METADATA)).toMatchObject([
      { method: 'GET', path, headers: { 'metadata-flavor': 'Google' } },
    ]);
  });
});

describe('oauth2', () => {
  it('sends the identity token as the assertion of the client', async () => {
    keyless.clouds.hosts.set('login.microsoftonline.com', () => bearer('entra'));
    const token = keyless.identify('entra');
    const { status, sent } = await keyless.call(await keyless.add(ENTRA));
    expect([status, sent!.path, sent!.headers.authorization]).toEqual([
      200,
      '/openai/v1/chat/completions',
      'Bearer entra',
    ]);
    const [exchange] = keyless.clouds.at('login.microsoftonline.com');
    expect(exchange).toMatchObject({ method: 'POST', path: new URL(TOKEN_URL).pathname });
    expect(formOf(exchange!)).toEqual({
      grant_type: 'client_credentials',
      client_id: 'client-1',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: token,
      scope: 'https://cognitiveservices.azure.com/.default',
    });
  });

  it.each([
    [{}, {}],
    [{ client_id: 'user-assigned' }, { client_id: 'user-assigned' }],
  ])('asks for a token of a managed identity with %j', async (settings, more) => {
    // The metadata service of Azure has numbers as texts.
    keyless.clouds.hosts.set(METADATA, () => bearer('managed', '3599'));
    const scope = 'https://cognitiveservices.azure.com/.default';
    const name = await onAzure.add({
      auth: 'oauth2',
      url: PROVIDERS.azure,
      auth_settings: { source: 'metadata', scope, ...settings },
    });
    expect((await onAzure.call(name)).sent!.headers.authorization).toBe('Bearer managed');
    const [asked] = keyless.clouds.at(METADATA);
    const [path, query] = asked!.path.split('?');
    expect([asked!.method, path, asked!.headers.metadata]).toEqual([
      'GET',
      '/metadata/identity/oauth2/token',
      'true',
    ]);
    expect(Object.fromEntries(new URLSearchParams(query))).toEqual({
      'api-version': '2018-02-01',
      resource: 'https://cognitiveservices.azure.com',
      ...more,
    });
  });
});

it('keeps a new gateway from storing anything secret: only names are in the row', async () => {
  const name = await keyless.add(OPENAI);
  const [row] = await keyless.gateway.database.query<{ sealed_secret: Buffer | null; auth_settings: object }>(
    `SELECT sealed_secret, auth_settings FROM provider WHERE name = '${name}'`,
  );
  expect(row).toEqual({ sealed_secret: null, auth_settings: OPENAI.auth_settings });
  expect(await keyless.gateway.admin('GET', `/providers/${name}`)).toMatchObject({
    auth: 'openai-federation',
    secret_state: 'none',
    auth_settings: OPENAI.auth_settings,
  });
});
