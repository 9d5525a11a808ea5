import dns, { type LookupAddress } from 'node:dns';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { IssuerKeys } from '../../src/identity/trusts/issuer-keys.service.js';
import { IssuerReader } from '../../src/identity/trusts/issuer-reader.js';
import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { setPatience } from '../support/patience.js';
import { exchange, fromAnother, MANY_ADDRESSES } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';
import { startWorkloadIssuer } from './workload-issuer.js';

type Answer = (req: IncomingMessage, res: ServerResponse, issuer: FakeIssuer) => unknown;
type Found = (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway({ GATEWAY_URL: 'https://gateway.example.com', ...MANY_ADDRESSES });
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

afterEach(() => void jest.restoreAllMocks());

/** Lets the monotonic clock run ahead. */
function timeShifts(): (ms: number) => void {
  const now = performance.now.bind(performance);
  let ahead = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
  return (ms) => (ahead += ms);
}

const statusOf = async (trust: string, token: string) =>
  (await exchange(gateway, trust, token, {}, fromAnother())).status;

describe('the keys of an issuer', () => {
  it('are those of the issuer of the trust only', async () => {
    const [one, other] = [await startIssuer('same'), await startIssuer('same')];
    const trust = await createTrust({ issuer: one.url, claims: { sub: ['job'] } });
    const second = await createTrust({ issuer: other.url, claims: { sub: ['job'] } });
    expect(await statusOf(trust, await one.sign())).toBe(200);
    expect(await statusOf(second, await other.sign())).toBe(200);
    expect(await statusOf(second, await one.sign({ iss: other.url }))).toBe(400);
    expect(await statusOf(trust, await other.sign())).toBe(400);
    expect(await statusOf(trust, await other.sign({ iss: one.url }))).toBe(400);
  });

  it('are read again for an unknown kid, at most once in 30 seconds', async () => {
    const [issuer, next] = [await startIssuer(), await startIssuer('two')];
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] } });
    const later = timeShifts();
    expect(await statusOf(trust, await issuer.sign())).toBe(200);
    const asked = issuer.asked.length;
    // The issuer has another key from here on.
    issuer.keys = [next.publicJwk];
    const rotated = await next.sign({ iss: issuer.url });
    later(20_000);
    const unknown = async (i: number) =>
      statusOf(trust, await issuer.sign({}, { header: { kid: `made up ${i}` } }));
    for (let i = 0; i < 5; i++) expect(await unknown(i)).toBe(400);
    expect(issuer.asked).toHaveLength(asked);
    later(11_000);
    expect(await statusOf(trust, rotated)).toBe(200);
    for (let i = 0; i < 5; i++) expect(await unknown(i)).toBe(400);
    expect(issuer.asked).toHaveLength(asked + 2);
    // A key that the issuer has withdrawn.
    expect(await statusOf(trust, await issuer.sign())).toBe(400);
  });

  it('are not read for a trust that is disabled', async () => {
    const [issuer, other] = [await startIssuer(), await startIssuer()];
    // With none that is enabled, nothing is exchanged at all.
    await createTrust({ issuer: other.url, claims: { sub: ['job'] } });
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] }, enabled: false });
    expect(await statusOf(trust, await issuer.sign())).toBe(400);
    const verdict = await gateway.admin('POST', `/trusts/${trust}/test`, { token: await issuer.sign() });
    expect(verdict).toMatchObject({ accepted: false, reason: 'disabled' });
    expect(issuer.asked).toEqual([]);
  });

  /** The discovery document of an issuer, with these members in place of the usual ones. */
  const document =
    (members: (issuer: FakeIssuer) => object): Answer =>
    (req, res, issuer) => {
      const body = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys`, ...members(issuer) };
      // The keys are there, so that nothing else is wrong.
      res.end(JSON.stringify(req.url === '/keys' ? { keys: issuer.keys } : body));
    };
  const keysAt = (of: (issuer: FakeIssuer) => string) => document((issuer) => ({ jwks_uri: of(issuer) }));
  const portOf = ({ url }: FakeIssuer) => new URL(url).port;
  const notAllowed = /^the jwks_uri that .* names is not allowed$/;
  const broken: [string, Answer, RegExp, number][] = [
    [
      'from an issuer that calls itself another',
      document(({ url }) => ({ issuer: `${url}/` })),
      /not exactly/,
      1,
    ],
    ['from an issuer without a name', document(() => ({ issuer: undefined })), /not exactly/, 1],
    ['from a metadata address', keysAt(() => 'http://169.254.169.254/keys'), notAllowed, 1],
    ['over plain HTTP from a public address', keysAt(() => 'http://192.0.2.1/keys'), notAllowed, 1],
    // Connects to this machine, so that the keys would be found.
    ['from no address', keysAt((issuer) => `http://0.0.0.0:${portOf(issuer)}/keys`), notAllowed, 1],
    ['with a credential', keysAt(({ url }) => `${url.replace('//', '//user@')}/keys`), notAllowed, 1],
    ['from a file', keysAt(() => 'file:///etc/passwd'), notAllowed, 1],
    [
      'after a redirect of the document',
      (req, res, issuer) => {
        if (!req.url!.startsWith('/.well-known')) return document(() => ({}))(req, res, issuer);
        return res.writeHead(302, { location: '/elsewhere' }).end();
      },
      /status 302$/,
      1,
    ],
    [
      'after a redirect of the keys',
      (req, res, issuer) => {
        if (req.url !== '/keys') return document(() => ({}))(req, res, issuer);
        return res.writeHead(307, { location: '/moved' }).end();
      },
      /status 307$/,
      2,
    ],
    ['that are no JSON', (_req, res) => res.end('<html>'), /not JSON$/, 1],
    [
      'of more than 100',
      (req, res, issuer) => {
        issuer.keys = Array.from({ length: 101 }, () => issuer.publicJwk);
        return document(() => ({}))(req, res, issuer);
      },
      /no list of at most 100 keys$/,
      2,
    ],
    ['that are not there', (_req, res) => res.writeHead(500).end(), /status 500$/, 1],
  ];
  it.each(broken)('are not taken %s', async (_, respond, why, asked) => {
    const issuer = await startIssuer();
    issuer.instead = (req, res) => respond(req, res, issuer);
    await expect(gateway.gateway.app.get(IssuerReader).keysOf(issuer.url)).rejects.toMatchObject({
      name: 'IssuerError',
      message: expect.stringMatching(why) as string,
    });
    expect(issuer.asked).toHaveLength(asked);
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] } });
    const { status, headers, text } = await exchange(gateway, trust, await issuer.sign());
    expect({ status, text }).toMatchObject({
      status: 503,
      text: expect.stringContaining('temporarily_unavailable') as string,
    });
    expect(headers.get('retry-after')).toBe('5');
  });

  it('are not taken of an endless document, of which little more is read than it may have', async () => {
    const issuer = await startIssuer();
    let sent = 0;
    issuer.instead = (_req, res) => {
      const part = Buffer.alloc(65_536, 0x20);
      const more = () => {
        do sent += part.length;
        while (!res.destroyed && res.write(part));
      };
      res.on('drain', more);
      more();
    };
    const reader = gateway.gateway.app.get(IssuerReader);
    await expect(reader.keysOf(issuer.url)).rejects.toThrow('sent more than 256 KiB');
    // With what the buffers of both sockets hold.
    expect(sent).toBeLessThan(32 * 1_048_576);
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
    const restore = setPatience(0.5, 'an issuer');
    const answer = exchange(gateway, waiting, await slow.sign());
    await eventually(() => slow.asked.length > 0);
    restore();
    let isAnswered = false;
    void answer.then(() => (isAnswered = true));
    expect(await statusOf(trust, await other.sign())).toBe(200);
    expect(isAnswered).toBe(false);
    expect((await answer).status).toBe(503);
    await eventually(() => isClosed);
    await gateway.admin('DELETE', `/trusts/${waiting}`);
  });

  it('are not read from a name that has another address by then', async () => {
    const issuer = await startIssuer();
    const { port } = new URL(issuer.url);
    // A name server of the attacker: first an allowed address, then one that is not, where this machine answers as well.
    const addresses = ['127.0.0.1'];
    const { lookup } = dns;
    const names: string[] = [];
    jest.spyOn(dns, 'lookup').mockImplementation(((name: string, options: object, callback: never) => {
      if (name !== 'rebound.test') return lookup(name, options, callback);
      names.push(name);
      (callback as Found)(null, [{ address: addresses.shift() ?? '0.0.0.0', family: 4 }]);
    }) as unknown as typeof dns.lookup);
    const iss = `http://rebound.test:${port}`;
    issuer.instead = (req, res) => {
      const found = { issuer: iss, jwks_uri: `${iss}/keys` };
      res.end(JSON.stringify(req.url === '/keys' ? { keys: issuer.keys } : found));
    };
    const trust = await createTrust({ issuer: iss, claims: { sub: ['job'] } });
    expect(await statusOf(trust, await issuer.sign({ iss }))).toBe(503);
    expect(names.length).toBeGreaterThanOrEqual(2);
    expect(issuer.asked).toEqual(['/.well-known/openid-configuration']);
    // Else it would be accepted.
    addresses.push('127.0.0.1', '127.0.0.1');
    await gateway.gateway.app.get(IssuerKeys).refresh();
    expect(await statusOf(trust, await issuer.sign({ iss }))).toBe(200);
  });

  it('serve for 24 hours while the issuer is unavailable', async () => {
    const issuer = await startIssuer();
    const trust = await createTrust({ issuer: issuer.url, claims: { sub: ['job'] } });
    const later = timeShifts();
    expect(await statusOf(trust, await issuer.sign())).toBe(200);
    issuer.instead = (_req, res) => res.writeHead(500).end();
    const asked = issuer.asked.length;
    later(23 * 3_600_000);
    await gateway.gateway.app.get(IssuerKeys).refresh();
    expect(issuer.asked).toHaveLength(asked + 1);
    expect(await statusOf(trust, await issuer.sign())).toBe(200);
    later(2 * 3_600_000);
    expect(await statusOf(trust, await issuer.sign())).toBe(503);
    issuer.instead = null;
    later(31_000);
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
  // The cluster has another key from here on.
  const next = await startIssuer();
  await gateway.admin('PATCH', `/trusts/${trust}`, { jwks: { keys: [next.publicJwk] } });
  expect(await statusOf(trust, await cluster.sign(claims))).toBe(400);
  expect(await statusOf(trust, await next.sign(claims))).toBe(200);
  expect([cluster.asked, next.asked]).toEqual([[], []]);
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
    ['a branch of a name that begins the same', { ref: 'refs/heads/main2' }],
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

  it('is refused for a pull request by a trust of any ref that does not name the event, also if it has no preset', async () => {
    const claims = { repository_id: ['821093847'] };
    const trusts = [await createTrust({ preset: 'github', issuer: github.url, claims, any_ref: true })];
    const jwks = { keys: [github.publicJwk] };
    const iss = 'https://token.actions.githubusercontent.com';
    const plain = { issuer: iss, jwks, claims: { ...claims, sub: [sub] }, any_ref: true };
    trusts.push(await createTrust(plain));
    for (const trust of trusts)
      for (const event_name of ['pull_request', 'pull_request_target', 'issue_comment', 'workflow_run'])
        for (const issuer of [github.url, iss])
          expect(await statusOf(trust, await github.sign({ ...job, sub, iss: issuer, event_name }))).toBe(
            400,
          );
    expect(await statusOf(trusts[0]!, await github.sign({ ...job, sub }))).toBe(200);
    expect(await statusOf(trusts[1]!, await github.sign({ ...job, sub, iss }))).toBe(200);
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
  // A tag may have the name of a branch.
  const tag = await gitlab.sign({ ...job, ref_type: 'tag' });
  expect(await statusOf(trust, tag)).toBe(400);
  const ofTags = { ...claims, ref_type: ['tag'] };
  expect(
    await statusOf(await createTrust({ preset: 'gitlab', issuer: gitlab.url, claims: ofTags }), tag),
  ).toBe(200);
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
