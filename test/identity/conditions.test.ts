import { generateKeyPairSync } from 'node:crypto';
import { call, fieldsOf as fieldsOfAnswer } from '../admin/call.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({
    PUBLIC_URL: 'https://gateway.example.com',
    OIDC_ISSUER: 'https://login.example.com',
    OIDC_CLIENT_ID: 'console',
    OIDC_CLIENT_SECRET: 'secret-of-the-console',
    OIDC_ADMINS: 'admins',
  });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
});
afterAll(() => gateway.stop());

let names = 0;
const trust = (body: object) => ({ name: `trust ${++names}`, key: 'default/ci', ...body });

async function fieldsOf(body: object): Promise<string[]> {
  const answer = await call(gateway, 'POST', '/trusts', trust(body));
  expect(answer.status).toBe(400);
  return fieldsOfAnswer(answer);
}

const REF = { ref: ['refs/heads/main'] };

describe('a trust cannot be created', () => {
  const cases: [string, object, string][] = [
    ['without who the caller is', { issuer: 'https://a.example', claims: { role: ['x'] } }, 'claims'],
    ['for any subject', { issuer: 'https://a.example', claims: { sub: ['*'] } }, 'claims.sub'],
    [
      'for GitHub without an ID',
      { preset: 'github', claims: { repository: ['acme/api'], ...REF } },
      'claims',
    ],
    ['for GitHub without a ref', { preset: 'github', claims: { repository_id: ['1'] } }, 'claims'],
    [
      'for GitLab without a project',
      { preset: 'gitlab', claims: { project_path: ['a/b'], ...REF } },
      'claims',
    ],
    ['for GitLab without a ref', { preset: 'gitlab', claims: { project_id: ['1'] } }, 'claims'],
    [
      'for GitHub as any other issuer',
      { issuer: 'https://token.actions.githubusercontent.com', claims: { sub: ['repo:acme/api:*'] } },
      'claims',
    ],
    [
      'for Buildkite without an ID',
      { issuer: 'https://agent.buildkite.com', claims: { sub: ['a'] } },
      'claims',
    ],
    [
      'for CircleCI without a project',
      { issuer: 'https://oidc.circleci.com/org/1', claims: { sub: ['a'] } },
      'claims',
    ],
    [
      'for Terraform Cloud without an ID',
      { issuer: 'https://app.terraform.io', claims: { sub: ['a'] } },
      'claims',
    ],
    [
      'for a part of a name',
      { preset: 'oidc', issuer: 'https://a.example', claims: { sub: ['repo:acme/api*'] } },
      'claims.sub',
    ],
    [
      'for a part of an ID',
      { preset: 'github', claims: { repository_id: ['82/*'], ...REF } },
      'claims.repository_id',
    ],
    [
      'for all service accounts of a namespace',
      {
        preset: 'kubernetes',
        issuer: 'https://k.example',
        claims: { sub: ['system:serviceaccount:prod:*'] },
      },
      'claims.sub',
    ],
    [
      'for ID tokens of the console',
      { issuer: 'https://a.example', audience: 'console', claims: { sub: ['a'] } },
      'audience',
    ],
    ['without an issuer', { claims: { sub: ['a'] } }, 'issuer'],
    [
      'for every tenant of Azure',
      { issuer: 'https://login.microsoftonline.com/common/v2.0', claims: { sub: ['a'] } },
      'issuer',
    ],
    [
      'for an issuer at a metadata address',
      { issuer: 'https://169.254.169.254', claims: { sub: ['a'] } },
      'issuer',
    ],
    ['for a public issuer over plain HTTP', { issuer: 'http://192.0.2.1', claims: { sub: ['a'] } }, 'issuer'],
  ];
  it.each(cases)('%s', async (_, body, field) => {
    expect(await fieldsOf(body)).toContain(field);
  });

  it('with keys that sign', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'one' };
    const rest = { issuer: 'https://a.example', claims: { sub: ['a'] } };
    expect(await fieldsOf({ ...rest, jwks: { keys: [jwk] } })).toEqual(['jwks']);
    const secret = { kty: 'oct', k: 'c2VjcmV0', kid: 'one' };
    expect(await fieldsOf({ ...rest, jwks: { keys: [secret] } })).toEqual(['jwks']);
  });

  it('for a key that is revoked or does not exist', async () => {
    const rest = { issuer: 'https://a.example', claims: { sub: ['a'] } };
    const unknown = await call(gateway, 'POST', '/trusts', { ...trust(rest), key: 'default/none' });
    expect(unknown.status).toBe(404);
    const { id } = await gateway.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'gone' });
    await gateway.admin('POST', `/keys/${id}/revoke`);
    const revoked = await call(gateway, 'POST', '/trusts', { ...trust(rest), key: id });
    expect(revoked.status).toBe(409);
  });
});

it('that is unknown is reported before its unknown key', async () => {
  const unknown = await call(gateway, 'PATCH', '/trusts/none', { key: 'default/none' });
  expect([unknown.status, fieldsOfAnswer(unknown)]).toEqual([404, ['id']]);
});

it('has the issuer, the audience and the longest lifetime that its preset and the gateway say', async () => {
  const github = await gateway.admin(
    'POST',
    '/trusts',
    trust({ preset: 'github', claims: { repository_id: ['1'] }, any_ref: true }),
  );
  expect(github).toMatchObject({
    key: 'default/ci',
    issuer: 'https://token.actions.githubusercontent.com',
    audience: 'https://gateway.example.com',
    longest_jwt_minutes: 120,
    token_minutes: 60,
    enabled: true,
  });
  const gitlab = await gateway.admin(
    'POST',
    '/trusts',
    trust({ preset: 'gitlab', claims: { project_id: ['1'], ...REF } }),
  );
  expect(gitlab).toMatchObject({ longest_jwt_minutes: 1440 });
});

it('cannot be changed to conditions that it could not be created with', async () => {
  const { id } = await gateway.admin<{ id: string }>(
    'POST',
    '/trusts',
    trust({ preset: 'github', claims: { repository_id: ['1'], ...REF } }),
  );
  const change = (body: object) => call(gateway, 'PATCH', `/trusts/${id}`, body);
  expect((await change({ claims: { repository: ['acme/api'], ...REF } })).status).toBe(400);
  expect((await change({ claims: { repository_id: ['1'] } })).status).toBe(400);
  expect((await change({ claims: { repository_id: ['1'] }, any_ref: true })).status).toBe(200);
  expect((await change({ any_ref: false })).status).toBe(400);
  // The audience of ID tokens of the console.
  expect(fieldsOfAnswer(await change({ audience: 'console' }))).toEqual(['audience']);
});
