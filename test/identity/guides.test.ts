import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { OpenIdProvider } from '../admin/openid-provider.js';
import { runHere } from '../cli/run-here.js';
import { soon } from '../support/eventually.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { itNeeding } from '../support/needing.js';
import { answer, RawProvider } from '../support/raw-provider.js';
import { unusedPort } from '../support/unused-port.js';
import { signedIn, signInSettings, USERS } from './device-flow.js';
import { statusWith } from './exchanges.js';
import { FakeIssuer } from './fake-issuer.js';

const GATEWAY_URL = 'https://gateway.example.com';
/** What the jobs of the guide run. */
const missing = ['bash', 'curl', 'jq'].filter(
  (program) => spawnSync(program, ['--version']).error !== undefined,
);
const lacking = missing.length === 0 ? null : `not found: ${missing.join(', ')}`;

let provider: RawProvider;
let idp: OpenIdProvider;
let cluster: FakeIssuer;
let postern: TestGateway;
let folder: string;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  provider = await RawProvider.start((req) => void req.socket.write(answer('200 OK', [], 'reached')));
  const publicUrl = `http://127.0.0.1:${await unusedPort()}`;
  idp = await OpenIdProvider.start(publicUrl, USERS, { refresh: true });
  cluster = await FakeIssuer.start();
  folder = mkdtempSync(join(tmpdir(), 'postern-guides-'));
  postern = await startTestGateway({
    PROVIDER_URL: provider.url,
    ...signInSettings(idp, publicUrl),
    GATEWAY_URL,
    REQUEST_LOG_CLIENT: 'truncated',
  });
  await postern.admin('PATCH', '/teams/default', { sign_in: {} });
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys: [cluster.publicJwk] }));
  for (const line of commandsOf('ci-and-pods.md', 'Set up')) await cli(line);
  // With keys that are stored, the issuers are not asked.
  for (const section of ['GitHub Actions', 'GitLab'])
    for (const line of commandsOf('ci-and-pods.md', section)) await cli(`${line} --jwks keys.json`);
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await postern.stop();
  await cluster.stop();
  await idp.stop();
  await provider.stop();
});

/** Runs a line of a guide. @returns what it prints */
async function cli(line: string, input = ''): Promise<string> {
  const args = line.split(/\s+/).slice(1);
  const env = { POSTERN_URL: postern.url, POSTERN_ADMIN_TOKEN: ADMIN_TOKEN };
  const { code, stdout, stderr } = await runHere(args, env, folder, input);
  if (code !== 0) throw new Error(`${line}: ${stderr}`);
  return stdout;
}

/** What a section of a guide says. */
function sectionOf(guide: string, section: string): string {
  const text = readFileSync(join(__dirname, '../../docs/guides', guide), 'utf8');
  const from = text.indexOf(`\n## ${section}\n`);
  return text.slice(from, text.indexOf('\n## ', from + 4));
}

/** The commands of the gateway that a section of a guide has in its blocks. */
function commandsOf(guide: string, section: string): string[] {
  const joined = sectionOf(guide, section).replace(/\\\n\s*/g, '');
  return [...joined.matchAll(/^ *(postern .*)$/gm)].map(([, line]) => line!);
}

/** The workflow that a section of the guide for CI has. */
function workflowOf<T>(section: string): T {
  return parse(/^```yaml\n(.*?)^```/ms.exec(sectionOf('ci-and-pods.md', section))![1]!) as T;
}

/** Runs a script of a job, with nothing replaced but the address of the gateway. @returns what it prints */
async function runScript(script: string, env: Record<string, string>): Promise<string> {
  const here = script.replaceAll(`${GATEWAY_URL}/`, `${postern.url}/`);
  expect(here).not.toBe(script);
  const args = ['--noprofile', '--norc', '-eo', 'pipefail', '-c', here];
  const ran = await promisify(execFile)('bash', args, { env: { PATH: process.env.PATH, ...env } });
  return ran.stdout;
}

describe('the job of the guide', () => {
  itNeeding(
    lacking,
    'of GitHub Actions gets a token, and fails for a ref that the trust does not name',
    async () => {
      let ref = 'refs/heads/main';
      const asked: (string | undefined)[] = [];
      cluster.instead = (req, res) => {
        asked.push(req.headers.authorization);
        const audience = new URL(req.url!, cluster.url).searchParams.get('audience');
        const claims = { repository_id: '821093847', event_name: 'push', ref, aud: audience };
        const issuer = 'https://token.actions.githubusercontent.com';
        void cluster.sign({ iss: issuer, sub: `repo:acme/api:ref:${ref}`, ...claims }).then((value) => {
          res.setHeader('content-type', 'application/json').end(JSON.stringify({ count: 1, value }));
        });
      };
      const { steps } = workflowOf<{ steps: { shell: string; run: string }[] }>('GitHub Actions');
      const GITHUB_ENV = join(folder, 'github-env');
      writeFileSync(GITHUB_ENV, 'CI=true\n');
      const run = () =>
        runScript(steps[0]!.run, {
          ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job',
          ACTIONS_ID_TOKEN_REQUEST_URL: `${cluster.url}/token?api-version=2.0`,
          GITHUB_ENV,
        });
      const printed = await run();
      const [, token] = /^CI=true\nOPENAI_API_KEY=(ptn_\w+)\n$/.exec(readFileSync(GITHUB_ENV, 'utf8'))!;
      expect([steps[0]!.shell, printed, asked]).toEqual([
        'bash',
        `::add-mask::${token}\n`,
        ['Bearer of-the-job'],
      ]);
      expect(await statusWith(postern, token!)).toBe(200);

      ref = 'refs/pull/7/merge';
      await expect(run()).rejects.toMatchObject({ code: expect.any(Number) as number, stdout: '' });
      expect(readFileSync(GITHUB_ENV, 'utf8')).toBe(`CI=true\nOPENAI_API_KEY=${token}\n`);
      cluster.instead = null;
    },
  );

  itNeeding(lacking, 'of GitLab gets a token, and fails for a ref that the trust does not name', async () => {
    const { job } = workflowOf<{ job: { id_tokens: Record<string, { aud: string }>; script: string[] } }>(
      'GitLab',
    );
    const [[name, { aud }]] = Object.entries(job.id_tokens) as [[string, { aud: string }]];
    const run = async (ref: string) => {
      const claims = { project_id: '42', ref, ref_type: 'branch', aud };
      const sub = `project_path:acme/web:ref_type:branch:ref:${ref}`;
      const jwt = await cluster.sign({ iss: 'https://gitlab.com', sub, ...claims });
      return runScript([...job.script, 'printenv OPENAI_API_KEY'].join('\n'), { [name]: jwt });
    };
    expect(await statusWith(postern, (await run('main')).trim())).toBe(200);
    await expect(run('another')).rejects.toMatchObject({ stdout: '' });
  });
});

it('the pod of the guide gets a token with the commands of the guide, and loses it with the trust', async () => {
  const commands = commandsOf('ci-and-pods.md', "Kubernetes, with Anthropic's SDK or Claude Code");
  const [createKey, createTrust] = commands;
  await cli(createKey!);
  await cli(createTrust!);
  const claims = {
    iss: 'https://kubernetes.default.svc.cluster.local',
    aud: [GATEWAY_URL],
    sub: 'system:serviceaccount:prod:worker',
    'kubernetes.io': { namespace: 'prod', serviceaccount: { name: 'worker' } },
  };
  const token = async (assertion: string) => {
    // As Anthropic's SDKs do.
    const response = await fetch(`${postern.url}/p/default/v1/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion,
        federation_rule_id: 'worker',
        organization_id: '00000000-0000-0000-0000-000000000000',
      }),
    });
    return { status: response.status, ...((await response.json()) as { access_token?: string }) };
  };
  const issued = await token(await cluster.sign(claims));
  expect(issued.status).toBe(200);
  expect(await statusWith(postern, issued.access_token!)).toBe(200);

  const other = await cluster.sign({ ...claims, sub: 'system:serviceaccount:prod:other' });
  expect((await token(other)).status).toBe(400);
  expect(await cli('postern trusts test worker', other)).toContain('the claim sub');
  expect(await cli('postern trusts update worker --jwks keys.json')).toContain('worker');
  expect(await cli('postern trusts list')).toContain('search/worker');
  await cli('postern trusts disable worker');
  await soon(async () => (await statusWith(postern, issued.access_token!)) === 401);
  await cli('postern trusts delete worker --yes');
  expect((await token(await cluster.sign(claims))).status).toBe(400);
});

it('the trusts of the guide accept the branch only, not a tag of its name', async () => {
  const accepts = async (trust: string, claims: object) => {
    const token = await cluster.sign({ aud: GATEWAY_URL, ...claims });
    const checks = await cli(`postern trusts test ${trust}`, token);
    return !/^claims\.\S+ +not met/m.test(checks);
  };
  const push = { repository_id: '821093847', event_name: 'push' };
  expect(await accepts('api-ci', { ...push, ref: 'refs/heads/main' })).toBe(true);
  expect(await accepts('api-ci', { ...push, ref: 'refs/tags/main' })).toBe(false);
  const pipeline = { project_id: '42', ref: 'main' };
  expect(await accepts('web-ci', { ...pipeline, ref_type: 'branch' })).toBe(true);
  expect(await accepts('web-ci', { ...pipeline, ref_type: 'tag' })).toBe(false);
});

it('a team allows what the commands of the guide say', async () => {
  await postern.admin('POST', '/providers', { name: 'anthropic', url: provider.url, secret: 'sk-test' });
  const rules: object[] = [];
  for (const section of ['Set up', 'Codex, goose and scripts'])
    for (const line of commandsOf('sign-in-from-clients.md', section).filter((one) =>
      one.includes('teams'),
    )) {
      await cli(line);
      const { data } = await postern.admin<{ data: { name: string; sign_in: object }[] }>('GET', '/teams');
      rules.push(data.find(({ name }) => name === 'search')!.sign_in);
    }
  const rule = { days: 30, budget_usd_per_month: '50', providers: ['anthropic'] };
  expect(rules).toMatchObject([60, 720].map((minutes) => ({ ...rule, token_minutes: minutes })));
});

it('whoever leaves is found, shown, signed out, ended, let in again and forgotten by the commands of the guide', async () => {
  const tokens = await signedIn(postern, idp);
  const other = await signedIn(postern, idp);
  expect(await cli('postern people list --search jane@example.com')).toContain('Jane Doe');
  expect(await cli('postern people show jane@example.com')).toContain('default/jane@example.com');
  const listed = await cli('postern sign-ins list --state active');
  expect(listed).toMatch(/Jane Doe +default\/jane@example\.com +claude_code +10\.1\.\d+\.0 /);
  const { data } = JSON.parse(await cli('postern sign-ins list --json')) as { data: { id: string }[] };
  expect(await cli(`postern sign-ins end ${data[0]!.id} --yes`)).toBe(`Ended sign-in ${data[0]!.id}.\n`);
  await soon(async () => (await statusWith(postern, other.access)) === 401);
  expect(await statusWith(postern, tokens.access)).toBe(200);
  expect(await cli('postern sign-ins list --state ended')).toContain('(ended)');
  await expect(cli(`postern sign-ins end ${data[0]!.id} --yes`)).rejects.toThrow('list the sign-ins');

  expect(await cli('postern people end jane@example.com --yes')).toContain('Sign-ins: 1.');
  await soon(async () => (await statusWith(postern, tokens.access)) === 401);
  expect(await cli('postern people list --state ended')).toContain('Jane Doe');
  await cli('postern people reopen jane@example.com');
  await signedIn(postern, idp);
  await cli('postern people end jane@example.com --yes');
  expect(await cli('postern people forget jane@example.com --yes')).toContain('is now called');
  expect(await cli('postern people list')).not.toContain('Jane');
});
