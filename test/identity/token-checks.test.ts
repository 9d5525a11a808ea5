import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { FakeIssuer } from './fake-issuer.js';

interface Verdict {
  accepted: boolean;
  reason: string | null;
  subject: string | null;
  checks: { name: string; met: boolean; detail: string | null }[];
}

const REF = 'refs/heads/main';
let gateway: TestGateway;
let issuer: FakeIssuer;
beforeAll(async () => {
  issuer = await FakeIssuer.start();
  gateway = await startTestGateway({ GATEWAY_URL: 'https://gateway.example.com' });
  await gateway.admin('POST', '/keys', { team: 'default', name: 'ci', secret: false });
  await gateway.admin('POST', '/trusts', {
    name: 'jobs',
    key: 'default/ci',
    issuer: issuer.url,
    audience: 'gateway',
    claims: { sub: ['job'], ref: [REF], '/kubernetes.io/namespace': ['prod'] },
    cidrs: ['192.0.2.0/24'],
  });
});
afterAll(async () => {
  await gateway.stop();
  await issuer.stop();
});

const GOOD = { ref: REF, 'kubernetes.io': { namespace: 'prod' } };
const verdictOn = (token: string) => gateway.admin<Verdict>('POST', '/trusts/jobs/test', { token });
/** The names of the checks that are met, and of those that are not. */
const named = ({ checks }: Verdict) => [
  checks.filter(({ met }) => met).map(({ name }) => name),
  checks.filter(({ met }) => !met).map(({ name }) => name),
];
const OF_CLAIMS = ['issuer', 'audience', 'type', 'subject', 'lifetime'];
/** In the order of jsonb. */
const CONDITIONS = ['claims.ref', 'claims.sub', 'claims./kubernetes.io/namespace'];

it('a token that is tested meets each check but that of its network, which is not made', async () => {
  const verdict = await verdictOn(await issuer.sign(GOOD));
  expect(verdict).toMatchObject({ accepted: true, reason: null, detail: null, subject: 'job' });
  const all = ['format', 'enabled', 'signature', ...OF_CLAIMS, ...CONDITIONS, 'time', 'key'];
  expect(named(verdict)).toEqual([all, []]);
  expect(verdict.checks.map(({ detail }) => detail)).toEqual(all.map(() => null));
});

it('is told all that is wrong with it at once', async () => {
  const other = await FakeIssuer.start();
  await other.stop();
  const claims = {
    ...GOOD,
    aud: 'another',
    ref: 'refs/pull/7/merge',
    exp: Math.floor(Date.now() / 1000) - 60,
  };
  const token = await issuer.sign({ ...claims, iat: claims.exp - 60 }, { key: other.privateKey });
  const verdict = await verdictOn(token);
  expect(verdict).toMatchObject({ accepted: false, reason: 'signature', subject: null });
  expect(named(verdict)[1]).toEqual(['signature', 'audience', 'claims.ref', 'time']);
  expect(verdict.checks.filter(({ met }) => !met).map(({ detail }) => detail)).toEqual([
    expect.stringContaining('its signature is not that of the issuer'),
    'its aud must be the audience of the trust, and nothing else',
    'the claim ref does not have an accepted value',
    'it has expired',
  ]);
});

it('is not held against the clock without times, and against nothing if it cannot be read', async () => {
  const without = await verdictOn(await issuer.sign({ ...GOOD, exp: undefined }));
  expect(without).toMatchObject({ accepted: false, reason: 'lifetime' });
  expect(named(without)[1]).toEqual(['lifetime']);
  expect(named(without)[0]).not.toContain('time');
  const unreadable = await verdictOn('no token');
  expect(unreadable).toMatchObject({ accepted: false, reason: 'malformed', subject: null });
  expect(named(unreadable)).toEqual([[], ['format']]);
});

it('of a disabled trust is not verified, and of a disabled team is told so', async () => {
  const token = await issuer.sign(GOOD);
  await gateway.admin('PATCH', '/trusts/jobs', { enabled: false });
  const before = issuer.asked.length;
  const disabled = await verdictOn(token);
  expect(issuer.asked).toHaveLength(before);
  expect(disabled).toMatchObject({ accepted: false, reason: 'disabled' });
  expect(named(disabled)[1]).toEqual(['enabled']);
  expect(named(disabled)[0]).not.toContain('signature');
  await gateway.admin('PATCH', '/trusts/jobs', { enabled: true });
  await gateway.admin('PATCH', '/teams/default', { disabled: true });
  const verdict = await verdictOn(token);
  await gateway.admin('PATCH', '/teams/default', { disabled: false });
  expect(verdict).toMatchObject({ accepted: false, reason: 'disabled' });
  expect(named(verdict)[1]).toEqual(['key']);
});
