import dns, { type LookupAddress } from 'node:dns';
import type { ServerResponse } from 'node:http';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { exchange } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';
import { startWorkloadIssuer } from './workload-issuer.js';

type Found = (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ GATEWAY_URL: 'https://gateway.example.com' });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
});
afterAll(() => gateway.stop());

const issuers: FakeIssuer[] = [];
afterAll(() => Promise.all(issuers.map((issuer) => issuer.stop())));

async function startIssuer(kid?: string): Promise<FakeIssuer> {
  const issuer = await FakeIssuer.start(kid);
  issuers.push(issuer);
  return issuer;
}

let names = 0;
async function createTrust(body: object): Promise<string> {
  const name = `trust-${++names}`;
  await gateway.admin('POST', '/trusts', { name, key: 'default/ci', audience: 'gateway', ...body });
  return name;
}

const statusOf = async (trust: string, token: string) => (await exchange(gateway, trust, token)).status;

describe('the keys of an issuer', () => {
  it('are those of the issuer of the trust only', async () => {
    const [one, other] = [await startIssuer('same'), await startIssuer('same')];
    const trust = await createTrust({ issuer: one.url, claims: { sub: ['job'] } });
    await createTrust({ issuer: other.url, claims: { sub: ['job'] } });
    expect(await statusOf(trust, await one.sign())).toBe(200);
    expect(await statusOf(trust, await other.sign())).toBe(400);
    expect(await statusOf(trust, await other.sign({ iss: one.url }))).toBe(400);
  });

  it('are read again for an unknown kid, but not for each', async () => {
    const issuer = await startIssuer();
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] } });
    expect(await statusOf(trust, await issuer.sign())).toBe(200);
    const asked = issuer.asked.length;
    for (let i = 0; i < 10; i++)
      expect(await statusOf(trust, await issuer.sign({}, { header: { kid: `made up ${i}` } }))).toBe(400);
    expect(issuer.asked).toHaveLength(asked);
    expect(await statusOf(trust, await issuer.sign())).toBe(200);
  });

  type Answer = (res: ServerResponse, issuer: FakeIssuer) => void;
  const json =
    (of: (issuer: FakeIssuer) => object): Answer =>
    (res, issuer) => {
      res.setHeader('content-type', 'application/json').end(JSON.stringify(of(issuer)));
    };
  const broken: [string, Answer][] = [
    [
      'from an issuer that calls itself another',
      json(({ url }) => ({ issuer: `${url}/`, jwks_uri: `${url}/keys` })),
    ],
    [
      'from a metadata address',
      json(({ url }) => ({ issuer: url, jwks_uri: 'http://169.254.169.254/keys' })),
    ],
    [
      'over plain HTTP from a public address',
      json(({ url }) => ({ issuer: url, jwks_uri: 'http://192.0.2.1/keys' })),
    ],
    ['after a redirect', (res, { url }) => res.writeHead(302, { location: `${url}/elsewhere` }).end()],
    ['that are no JSON', (res) => res.end('<html>')],
    [
      'of an endless document',
      (res) => {
        const more = () => {
          while (!res.destroyed && res.write(Buffer.alloc(65_536, 0x20)));
        };
        res.on('drain', more);
        more();
      },
    ],
    ['that are not there', (res) => res.writeHead(500).end()],
  ];
  it.each(broken)('are not taken %s', async (_, respond) => {
    const issuer = await startIssuer();
    issuer.instead = (_req, res) => respond(res, issuer);
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] } });
    const { status, headers, text } = await exchange(gateway, trust, await issuer.sign());
    expect({ status, text }).toMatchObject({
      status: 503,
      text: expect.stringContaining('temporarily_unavailable') as string,
    });
    expect(headers.get('retry-after')).toBe('5');
  });

  it('are not waited for without end: while one issuer sends nothing more, tokens of others are exchanged', async () => {
    const [slow, other] = [await startIssuer(), await startIssuer()];
    let isClosed = false;
    slow.instead = (_req, res) => {
      res.on('close', () => (isClosed = true));
      // The beginning of a document.
      res.write('{');
    };
    const waiting = await createTrust({ issuer: slow.url, claims: { sub: ['job'] } });
    const trust = await createTrust({ issuer: other.url, claims: { sub: ['job'] } });
    const answer = exchange(gateway, waiting, await slow.sign());
    let isAnswered = false;
    void answer.then(() => (isAnswered = true));
    expect(await statusOf(trust, await other.sign())).toBe(200);
    expect(isAnswered).toBe(false);
    expect((await answer).status).toBe(503);
    await eventually(() => isClosed);
  });

  it('are not read from a name that has another address by then', async () => {
    const issuer = await startIssuer();
    const { port } = new URL(issuer.url);
    // A name server of the attacker: first an allowed address, then that of the metadata service.
    const addresses = ['127.0.0.1'];
    const { lookup } = dns;
    const names: string[] = [];
    jest.spyOn(dns, 'lookup').mockImplementation(((name: string, options: object, callback: never) => {
      if (name !== 'rebound.test') return lookup(name, options, callback);
      names.push(name);
      (callback as Found)(null, [{ address: addresses.shift() ?? '169.254.169.254', family: 4 }]);
    }) as unknown as typeof dns.lookup);
    const iss = `http://rebound.test:${port}`;
    issuer.instead = (_req, res) => res.end(JSON.stringify({ issuer: iss, jwks_uri: `${iss}/keys` }));
    const trust = await createTrust({ issuer: iss, claims: { sub: ['job'] } });
    expect(await statusOf(trust, await issuer.sign({ iss }))).toBe(503);
    expect(names.length).toBeGreaterThanOrEqual(2);
    expect(issuer.asked).toEqual(['/.well-known/openid-configuration']);
    jest.restoreAllMocks();
  });

  it('serve while the issuer is unavailable', async () => {
    const issuer = await startIssuer();
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] } });
    expect(await statusOf(trust, await issuer.sign())).toBe(200);
    issuer.instead = (_req, res) => res.writeHead(500).end();
    expect(await statusOf(trust, await issuer.sign())).toBe(200);
  });
});

it('a cluster with a private issuer has its keys in the trust, and conditions of nested claims', async () => {
  const cluster = await startIssuer();
  const iss = 'https://kubernetes.default.svc.cluster.local';
  const trust = await createTrust({
    preset: 'kubernetes',
    issuer: iss,
    jwks: { keys: [cluster.publicJwk] },
    claims: { sub: ['system:serviceaccount:prod:worker'], '/kubernetes.io/namespace': ['prod'] },
  });
  const claims = {
    iss,
    aud: ['gateway'],
    sub: 'system:serviceaccount:prod:worker',
    'kubernetes.io': {
      namespace: 'prod',
      pod: { name: 'worker-0', uid: '1' },
      serviceaccount: { name: 'worker' },
    },
  };
  expect(await statusOf(trust, await cluster.sign(claims))).toBe(200);
  expect(
    await statusOf(trust, await cluster.sign({ ...claims, 'kubernetes.io': { namespace: 'test' } })),
  ).toBe(400);
  expect(
    await statusOf(trust, await cluster.sign({ ...claims, sub: 'system:serviceaccount:prod:worker2' })),
  ).toBe(400);
  expect(cluster.asked).toEqual([]);
});

describe('GitHub Actions', () => {
  const job = {
    repository: 'acme/api',
    repository_id: '821093847',
    repository_owner: 'acme',
    repository_owner_id: '4711',
    ref: 'refs/heads/main',
    ref_type: 'branch',
    event_name: 'push',
    workflow_ref: 'acme/api/.github/workflows/ci.yml@refs/heads/main',
    run_id: '1',
    runner_environment: 'github-hosted',
  };
  let github: FakeIssuer;
  let trust: string;
  beforeAll(async () => {
    github = await startIssuer();
    const claims = { repository_id: ['821093847'], ref: ['refs/heads/main', 'refs/tags/*'] };
    trust = await createTrust({ preset: 'github', issuer: github.url, claims });
  });

  it.each([
    ['of old repositories', 'repo:acme/api:ref:refs/heads/main'],
    ['with IDs after @', 'repo:acme@4711/api@821093847:ref:refs/heads/main'],
    ['with IDs after -', 'repo:acme-4711/api-821093847:ref:refs/heads/main'],
  ])('is accepted with subjects %s', async (_, sub) => {
    expect(await statusOf(trust, await github.sign({ ...job, sub }))).toBe(200);
  });

  const sub = 'repo:acme/api:ref:refs/heads/main';
  it.each([
    ['another repository that got the name', { repository_id: '900000000' }],
    ['an ID as a number', { repository_id: 821093847 }],
    ['a longer ID', { repository_id: '8210938471' }],
    ['a branch', { ref: 'refs/heads/feature' }],
    ['the beginning of a tag alone', { ref: 'refs/tags/' }],
    ['a pull request', { event_name: 'pull_request', ref: 'refs/pull/7/merge' }],
    ['a pull request that runs on the base branch', { event_name: 'pull_request_target' }],
    ['a comment', { event_name: 'issue_comment' }],
    ['a token without an event', { event_name: undefined }],
    ['a list in place of a value', { ref: ['refs/heads/main'] }],
  ])('is refused for %s', async (_, claims) => {
    expect(await statusOf(trust, await github.sign({ ...job, sub, ...claims }))).toBe(400);
  });

  it('is accepted for a tag, and for an event that the trust names', async () => {
    expect(await statusOf(trust, await github.sign({ ...job, sub, ref: 'refs/tags/v1' }))).toBe(200);
    const claims = { repository_id: ['821093847'], event_name: ['pull_request'] };
    const named = await createTrust({ preset: 'github', issuer: github.url, claims, any_ref: true });
    const pull = { ...job, sub, event_name: 'pull_request', ref: 'refs/pull/7/merge' };
    expect(await statusOf(named, await github.sign(pull))).toBe(200);
    expect(await statusOf(named, await github.sign({ ...pull, event_name: 'push' }))).toBe(400);
  });
});

it('GitLab is known by the ID of the project and the ref', async () => {
  const gitlab = await startIssuer();
  const claims = { project_id: ['42'], ref: ['main'], ref_protected: ['true'] };
  const trust = await createTrust({ preset: 'gitlab', issuer: gitlab.url, claims });
  const job = {
    sub: 'project_path:acme/web:ref_type:branch:ref:main',
    project_id: '42',
    namespace_id: '7',
    ref: 'main',
    ref_type: 'branch',
    ref_protected: 'true',
    exp: Math.floor(Date.now() / 1000) + 10 * 3600,
  };
  expect(await statusOf(trust, await gitlab.sign(job))).toBe(200);
  expect(await statusOf(trust, await gitlab.sign({ ...job, project_id: '43' }))).toBe(400);
  expect(await statusOf(trust, await gitlab.sign({ ...job, ref_protected: 'false' }))).toBe(400);
  expect(await statusOf(trust, await gitlab.sign({ ...job, ref_protected: true }))).toBe(400);
});

it('an e-mail address counts only if the issuer has verified it', async () => {
  const google = await startIssuer();
  const claims = { email: ['job@acme.iam.gserviceaccount.com'] };
  const trust = await createTrust({ preset: 'google', issuer: google.url, claims });
  const job = { sub: '1', email: 'job@acme.iam.gserviceaccount.com' };
  expect(await statusOf(trust, await google.sign({ ...job, email_verified: true }))).toBe(200);
  expect(await statusOf(trust, await google.sign({ ...job, email_verified: false }))).toBe(400);
  expect(await statusOf(trust, await google.sign(job))).toBe(400);
});

it('a token of a real issuer is accepted: oidc-provider, by discovery', async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  const issuer = await startWorkloadIssuer('gateway');
  try {
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] } });
    expect(await statusOf(trust, await issuer.token())).toBe(200);
    const other = await createTrust({ issuer: issuer.url, claims: { sub: ['another'] } });
    expect(await statusOf(other, await issuer.token())).toBe(400);
  } finally {
    await issuer.stop();
  }
});
