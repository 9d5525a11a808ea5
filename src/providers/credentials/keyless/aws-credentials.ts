import {
  type Issued,
  lifeUntil,
  readObject,
  rejected,
  type RequestHeaders,
  TokenError,
  type TokenResponse,
  usable,
} from '../token-endpoint.js';
import type { AwsKeys } from '../aws-signer.js';
import { TOKEN_ORIGINS } from './cloud-hosts.js';
import { type Exchange, mustBeAt } from './exchange.js';
import { readSmallFile } from './identity-tokens.service.js';
import { ECS_CREDENTIALS, INSTANCE_METADATA } from './metadata-services.js';

/** Requests temporary credentials from where the setting `credentials` says. @throws TokenError */
export function requestAwsKeys(exchange: Exchange): Promise<Issued<AwsKeys>> {
  const { credentials } = exchange.settings;
  if (credentials === 'web-identity') return assumeRole(exchange);
  return credentials === 'container' ? ofContainer(exchange) : ofInstance(exchange);
}

/** Names the session in CloudTrail. AWS allows 64 characters. */
const sessionName = (provider: string) => `postern-${provider}`.slice(0, 64);

/**
 * AssumeRoleWithWebIdentity, which is not signed (AWS STS API Reference). The life of the credentials is the default of STS,
 * one hour.
 */
async function assumeRole(exchange: Exchange): Promise<Issued<AwsKeys>> {
  mustBeAt('aws', exchange);
  const { identity_token, role_arn } = exchange.settings;
  const { token, origin } = await exchange.identities.read(identity_token!, TOKEN_ORIGINS.aws);
  const form = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role_arn!,
    RoleSessionName: sessionName(exchange.provider),
    WebIdentityToken: token,
  });
  // Asked for JSON, STS responds in a form that is not documented.
  const response = await exchange.endpoint.post(`${origin}/`, form, { accept: 'text/xml' });
  const { status, text } = response;
  if (status !== 200) throw rejected(status, [element(text, 'Code'), element(text, 'Message')], [token]);
  return keysOf(response, {
    AccessKeyId: element(text, 'AccessKeyId'),
    SecretAccessKey: element(text, 'SecretAccessKey'),
    Token: element(text, 'SessionToken'),
    Expiration: element(text, 'Expiration'),
  });
}

/** The text of the only element with this name; none of those that are read has markup or entities. */
function element(xml: string, name: string): string | undefined {
  return new RegExp(`<${name}>([^<&]*)</${name}>`).exec(xml)?.[1];
}

/** ECS and EKS Pod Identity (AWS SDKs and Tools Reference Guide, "Container credential provider"). */
async function ofContainer(exchange: Exchange): Promise<Issued<AwsKeys>> {
  mustBeAt('aws', exchange);
  const { env, endpoint } = exchange;
  const relative = env.awsContainerCredentialsRelativeUri;
  if (relative !== undefined && !relative.startsWith('/'))
    throw new TokenError('AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must start with /');
  const url = relative === undefined ? env.awsContainerCredentialsFullUri : ECS_CREDENTIALS + relative;
  if (url === undefined || !URL.canParse(url)) {
    throw new TokenError(
      'neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI has a URL; ECS and EKS Pod Identity set one of them',
    );
  }
  const authorization =
    env.awsContainerAuthorizationTokenFile === undefined
      ? env.awsContainerAuthorizationToken
      : await readSmallFile(
          env.awsContainerAuthorizationTokenFile,
          'the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE',
        );
  const headers: RequestHeaders =
    authorization === undefined ? {} : { authorization: headerValue(authorization.trim()) };
  const response = await endpoint.metadata('aws', url, headers);
  const secrets = authorization === undefined ? [] : [authorization.trim()];
  return keysOf(response, readObject(response, secrets));
}

function headerValue(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new TokenError(
    'the authorization token of AWS_CONTAINER_AUTHORIZATION_TOKEN(_FILE) is not visible ASCII',
  );
}

/** IMDSv2 (Amazon EC2 User Guide, "Use the Instance Metadata Service"). Its version 1 is not used. */
async function ofInstance(exchange: Exchange): Promise<Issued<AwsKeys>> {
  mustBeAt('aws', exchange);
  const { endpoint } = exchange;
  const session = await endpoint.metadata(
    'aws',
    `${INSTANCE_METADATA}/latest/api/token`,
    { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
    'PUT',
  );
  if (session.status !== 200) throw rejected(session.status, [], []);
  const token = usable(session.text.trim(), 'session token');
  const headers = { 'x-aws-ec2-metadata-token': token };
  const roles = `${INSTANCE_METADATA}/latest/meta-data/iam/security-credentials/`;
  const listed = await endpoint.metadata('aws', roles, headers);
  if (listed.status === 404) throw new TokenError('this instance has no IAM role');
  if (listed.status !== 200) throw rejected(listed.status, [], []);
  const [role = ''] = listed.text.trim().split('\n', 1);
  // The characters that IAM allows in the name of a role.
  if (!/^[\w+=,.@-]{1,64}$/.test(role))
    throw new TokenError('the metadata service responded without the name of a role');
  const response = await endpoint.metadata('aws', roles + role, headers);
  const body = readObject(response, [token]);
  if (body.Code !== undefined && body.Code !== 'Success')
    throw rejected(response.status, [body.Code, body.Message], [token]);
  return keysOf(response, body);
}

function keysOf(response: TokenResponse, body: Record<string, unknown>): Issued<AwsKeys> {
  const value = {
    accessKeyId: usable(body.AccessKeyId, 'AccessKeyId'),
    secretAccessKey: usable(body.SecretAccessKey, 'SecretAccessKey'),
    sessionToken: usable(body.Token, 'session token'),
  };
  return { value, lifeMs: lifeUntil(body.Expiration, response) };
}
