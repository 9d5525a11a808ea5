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

/** What is wrong with a trust that cannot be created: one thing, so that no other hides that it is checked. */
async function problemOf(body: object): Promise<string> {
  const { status, body: answer } = await call(gateway, 'POST', '/trusts', trust(body));
  expect(status).toBe(400);
  expect(answer.error.details).toHaveLength(1);
  const [{ field, message }] = answer.error.details as [{ field: string; message: string }];
  return `${field}: ${message}`;
}

const REF = { ref: ['refs/heads/main'] };
const SUB = { sub: ['a'] };
const GITHUB = 'https://token.actions.githubusercontent.com';
const PART = 'may contain * only at its end, after : or /';
const REFS = 'to accept every branch, tag and environment, set any_ref';

describe('a trust cannot be created', () => {
  const cases: [string, object, string][] = [
    ['without conditions', { issuer: 'https://a.example', claims: {} }, 'claims: must name sub:'],
    [
      'without who the caller is',
      { issuer: 'https://a.example', claims: { role: ['x'] } },
      'claims: must name sub:',
    ],
    [
      'with a pointer to who the caller is',
      { issuer: 'https://a.example', claims: { '/sub': ['x'] } },
      'claims: must name sub:',
    ],
    ['for any subject', { issuer: 'https://a.example', claims: { sub: ['*'] } }, `claims.sub: ${PART}`],
    [
      'for GitHub without an ID',
      { preset: 'github', claims: { repository: ['acme/api'], ...REF } },
      'claims: must name repository_id or repository_owner_id:',
    ],
    [
      'for GitHub without a ref',
      { preset: 'github', claims: { repository_id: ['1'] } },
      `claims: must name ref, environment, workflow_ref or job_workflow_ref; ${REFS}`,
    ],
    [
      'for a GitHub of its own without an ID',
      { preset: 'github', issuer: 'https://github.example/_services/token', claims: { ...SUB, ...REF } },
      'claims: must name repository_id or repository_owner_id:',
    ],
    [
      'for GitLab without a project',
      { preset: 'gitlab', claims: { project_path: ['a/b'], ...REF } },
      'claims: must name project_id or namespace_id:',
    ],
    [
      'for GitLab without a ref',
      { preset: 'gitlab', claims: { project_id: ['1'] } },
      `claims: must name ref, ref_protected, environment or ci_config_ref_uri; ${REFS}`,
    ],
    ...[GITHUB, `${GITHUB}/`, `${GITHUB}/acme`].map((issuer): [string, object, string] => [
      `for GitHub as any other issuer (${issuer})`,
      { issuer, claims: { sub: ['repo:acme/api:*'], ...REF } },
      'claims: must name repository_id or repository_owner_id:',
    ]),
    [
      'for GitHub as any other issuer without a ref',
      { preset: 'kubernetes', issuer: GITHUB, claims: { ...SUB, repository_id: ['1'] } },
      `claims: must name ref, environment, workflow_ref or job_workflow_ref; ${REFS}`,
    ],
    [
      'for GitLab as any other issuer',
      { issuer: 'https://gitlab.com', claims: { ...SUB, ...REF } },
      'claims: must name project_id or namespace_id:',
    ],
    [
      'for GitLab as any other issuer without a ref',
      { issuer: 'https://gitlab.com', claims: { ...SUB, project_id: ['1'] } },
      `claims: must name ref, ref_protected, environment or ci_config_ref_uri; ${REFS}`,
    ],
    [
      'for Google without an account',
      { preset: 'google', claims: { hd: ['a'] } },
      'claims: must name sub or email:',
    ],
    [
      'for Google as Azure',
      { preset: 'azure', issuer: 'https://accounts.google.com', claims: { oid: ['1'] } },
      'claims: must name sub or email:',
    ],
    [
      'for Azure without an account',
      { preset: 'azure', issuer: 'https://login.microsoftonline.com/1/v2.0', claims: { tid: ['1'] } },
      'claims: must name sub or oid:',
    ],
    [
      'for AWS without a role',
      { preset: 'aws', issuer: 'https://a.example', claims: { account: ['1'] } },
      'claims: must name sub:',
    ],
    [
      'for Buildkite without an ID',
      { issuer: 'https://agent.buildkite.com', claims: SUB },
      'claims: must name organization_id or pipeline_id:',
    ],
    [
      'for CircleCI without a project',
      { issuer: 'https://oidc.circleci.com/org/1', claims: SUB },
      'claims: must name oidc.circleci.com/project-id:',
    ],
    [
      'for Terraform Cloud without an ID',
      { issuer: 'https://app.terraform.io', claims: SUB },
      'claims: must name terraform_organization_id, terraform_project_id or terraform_workspace_id:',
    ],
    ...['repo:acme/api*', 'repo:*:main', 'repo:*:*', 'a:**', '*:main'].map(
      (sub): [string, object, string] => [
        `for a part of a name (${sub})`,
        { issuer: 'https://a.example', claims: { sub: ['b', sub] } },
        `claims.sub: ${PART}`,
      ],
    ),
    ...['repository_id', '/repository/id', 'oid', 'project-id'].map((name): [string, object, string] => [
      `for a part of an ID (${name})`,
      { preset: 'github', claims: { repository_id: ['1'], ...REF, [name]: ['82/*'] } },
      `claims.${name}: must not contain *, because a part of an ID is the ID of somebody else`,
    ]),
    [
      'for all service accounts of a namespace',
      {
        preset: 'kubernetes',
        issuer: 'https://k.example',
        claims: { sub: ['system:serviceaccount:prod:*'] },
      },
      'claims.sub: must not contain *: name each service account',
    ],
    [
      'for ID tokens of the console',
      { issuer: 'https://a.example', audience: 'console', claims: SUB },
      'audience: must not be OIDC_CLIENT_ID',
    ],
    ['without an issuer', { claims: SUB }, 'issuer: must be given'],
    [
      'for every tenant of Azure',
      { issuer: 'https://login.microsoftonline.com/common/v2.0', claims: SUB },
      'issuer: must name one tenant',
    ],
    ...['https://169.254.169.254', 'http://0.0.0.0:8080', 'https://[fd00:ec2::254]', 'http://2852039166'].map(
      (issuer): [string, object, string] => [
        `for an issuer at a metadata address (${issuer})`,
        { issuer, claims: SUB },
        'issuer: must not point to a link-local, unspecified, multicast or cloud metadata address',
      ],
    ),
    [
      'for a public issuer over plain HTTP',
      { issuer: 'http://192.0.2.1', claims: SUB },
      'issuer: must use https:// for a public address',
    ],
    [
      'for an address that is no network',
      { issuer: 'https://a.example', claims: SUB, cidrs: ['10.0.0.0/8', '10.1.2.3/8'] },
      'cidrs: must name networks by their first address',
    ],
    [
      'for an IPv6 address that is no network',
      { issuer: 'https://a.example', claims: SUB, cidrs: ['2001:db8::1/127'] },
      'cidrs: must name networks by their first address',
    ],
    [
      'for a number that is not exact',
      { issuer: 'https://a.example', claims: { ...SUB, id: [1, 9_007_199_254_740_992] } },
      'claims.id.1: must not be a number beyond 2^53',
    ],
    [
      'for a claim that a record drops',
      { issuer: 'https://a.example', claims: JSON.parse('{"sub":["a"],"__proto__":["b"]}') as object },
      'claims: must not name a claim __proto__',
    ],
    [
      'for half a character',
      { issuer: 'https://a.example', claims: { sub: ['\ud800'] } },
      'claims.sub.0: must be text, a number, true or false',
    ],
  ];
  it.each(cases)('%s', async (_, body, problem) => {
    expect(await problemOf(body)).toContain(problem);
  });

  it('with keys that sign', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = { ...privateKey.export({ format: 'jwk' }), kid: 'one' };
    const rest = { issuer: 'https://a.example', claims: { sub: ['a'] } };
    const secret = 'jwks: must contain public keys only';
    expect(await problemOf({ ...rest, jwks: { keys: [jwk] } })).toContain(secret);
    const { d: _, ...good } = jwk;
    const oct = { kty: 'oct', kid: 'two' };
    expect(await problemOf({ ...rest, jwks: { keys: [good, oct] } })).toContain(secret);
    expect(await problemOf({ ...rest, jwks: { keys: [good, { ...good, k: 'c2VjcmV0' }] } })).toContain(
      secret,
    );
    await gateway.admin('POST', '/trusts', trust({ ...rest, jwks: { keys: [good] } }));
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

  it('for the key of the sign-ins of a person, which it would outlive', async () => {
    const { id } = await gateway.admin<{ id: string }>('POST', '/keys', { team: 'default', name: 'jane' });
    await gateway.database.query(
      `WITH jane AS (INSERT INTO person (id, issuer, subject, name) VALUES (gen_random_uuid(), 'i', 's', 'Jane') RETURNING id)
       UPDATE gateway_key SET origin = 'sign_in', person_id = jane.id FROM jane WHERE gateway_key.id = $1`,
      [id],
    );
    const made = trust({ issuer: 'https://a.example', claims: { sub: ['a'] } });
    expect(await call(gateway, 'POST', '/trusts', { ...made, key: id })).toMatchObject({ status: 409 });
    await gateway.admin('POST', '/trusts', made);
    expect(await call(gateway, 'PATCH', `/trusts/${made.name}`, { key: id })).toMatchObject({ status: 409 });
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
});

it.each<[string, number, object]>([
  ['gitlab', 1440, { claims: { project_id: ['1'], ...REF } }],
  ['kubernetes', 1440, { issuer: 'https://cluster.example', claims: SUB }],
  ['azure', 1440, { issuer: 'https://login.microsoftonline.com/tenant/v2.0', claims: SUB }],
  ['aws', 120, { issuer: 'https://account.tokens.sts.global.api.aws', claims: SUB }],
  ['google', 120, { claims: SUB }],
  ['oidc', 120, { issuer: 'https://a.example', claims: SUB }],
])('of %s accepts tokens that live for %i minutes', async (preset, minutes, more) => {
  const created = await gateway.admin('POST', '/trusts', trust({ preset, ...more }));
  expect(created).toMatchObject({ longest_jwt_minutes: minutes });
});

it('cannot be changed to conditions that it could not be created with', async () => {
  const { id } = await gateway.admin<{ id: string }>(
    'POST',
    '/trusts',
    trust({ preset: 'github', claims: { repository_id: ['1'], ...REF } }),
  );
  const change = (body: object) => call(gateway, 'PATCH', `/trusts/${id}`, body);
  expect((await change({ claims: { repository_id: ['1/*'], ...REF } })).status).toBe(400);
  expect((await change({ cidrs: ['10.1.2.3/8'] })).status).toBe(400);
  expect(
    (await change({ cidrs: ['10.0.0.0/8', '2001:db8::/32', '::ffff:10.0.0.0/104', '0.0.0.0/0'] })).status,
  ).toBe(200);
  expect((await change({ claims: { repository: ['acme/api'], ...REF } })).status).toBe(400);
  expect((await change({ claims: { repository_id: ['1'] } })).status).toBe(400);
  expect((await change({ claims: { repository_id: ['1'] }, any_ref: true })).status).toBe(200);
  expect((await change({ any_ref: false })).status).toBe(400);
  // The audience of ID tokens of the console.
  expect(fieldsOfAnswer(await change({ audience: 'console' }))).toEqual(['audience']);
});
