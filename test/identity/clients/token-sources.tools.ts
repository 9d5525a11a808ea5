import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { fences, read } from '../../docs/pages.js';
import { eventually } from '../../support/eventually.js';
import { PROVIDER_KEY } from '../../support/gateway.js';
import { FakeIssuer } from '../fake-issuer.js';
import { CLAUDE_CODE, claudeCode, CODEX, codex } from './client-packages.js';
import { type ClientGateway, startClientGateway } from './client-gateway.js';
import { ANSWER, type ReceivedCall } from './model-provider.js';
import { POSTERN, signInHere } from './postern-sign-in.js';

// Clients that get their tokens by themselves: by exchange of an identity token, or from `postern token`.

const run = promisify(execFile);
/** For what comes over the network the first time. */
const LONG_MS = 900_000;
const QUESTION = 'Say hello.';

const gateway = {} as ClientGateway;
let issuer: FakeIssuer;
let home: string;
/** `postern token` as one program. */
let helper: string;
beforeAll(async () => {
  for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
  issuer = await FakeIssuer.start();
  Object.assign(gateway, await startClientGateway());
  home = await mkdtemp(join(tmpdir(), 'postern-client-'));
  await signInHere(gateway, home);
  await mkdir(join(home, 'bin'));
  helper = join(home, 'bin/postern');
  const quoted = POSTERN.map((word) => `'${word}'`).join(' ');
  await writeFile(helper, `#!/bin/sh\nexec ${quoted} "$@"\n`);
  await chmod(helper, 0o755);
}, LONG_MS);
afterAll(async () => {
  await gateway.stop();
  await issuer.stop();
  await rm(home, { recursive: true });
});

/** Runs a client with nothing of the machine's own, in an empty folder. @returns what it prints */
async function runClient(command: string[], env: Record<string, string> = {}): Promise<string> {
  const cwd = await mkdtemp(join(home, 'work-'));
  const variables = { HOME: home, PATH: `${join(home, 'bin')}:${process.env.PATH}`, LANG: 'C.UTF-8' };
  const running = run(command[0]!, command.slice(1), {
    cwd,
    env: { ...variables, ...env },
    timeout: LONG_MS,
  });
  running.child.stdin!.end();
  const { stdout } = await running;
  return stdout.trim();
}

const jane = 'sso:jane@example.com';

/** What a client has sent since; its calls must be those of this subject, with the provider's credential and no other. */
async function callsOf(subject: string, calls: () => ReceivedCall[], since: number): Promise<ReceivedCall[]> {
  const made = calls().slice(since);
  expect(made.length).toBeGreaterThan(0);
  for (const { headers } of made) {
    expect(headers).toMatchObject({ 'x-api-key': PROVIDER_KEY });
    expect(headers.authorization).toBeUndefined();
    expect(JSON.stringify(headers)).not.toMatch(/pt[nrd]_|eyJ|oauth-2025/);
  }
  const last = await eventually(async () => {
    const rows = await gateway.postern.database.query<{ subject: string; status: number }>(
      'SELECT subject, status FROM request_log ORDER BY started_at',
    );
    return rows.length === gateway.provider.calls.length && rows.at(-1);
  });
  expect(last).toMatchObject({ subject, status: 200 });
  return made;
}

const messages = () => gateway.provider.at('/v1/messages');
const responses = () => gateway.provider.at('/v1/responses');

describe(`Claude Code ${CLAUDE_CODE}`, () => {
  let program: string;
  beforeAll(async () => {
    program = await claudeCode();
  }, LONG_MS);

  it('exchanges the identity token of a pod by environment variables alone', async () => {
    await gateway.postern.admin('POST', '/keys', { team: 'default', name: 'worker', secret: false });
    const claims = { sub: ['job'] };
    const trust = { name: 'worker', key: 'default/worker', issuer: issuer.url, audience: 'gateway', claims };
    await gateway.postern.admin('POST', '/trusts', trust);
    const file = join(home, 'identity-token');
    await writeFile(file, await issuer.sign());
    const since = messages().length;
    const printed = await runClient([program, '-p', QUESTION], {
      ANTHROPIC_BASE_URL: gateway.base,
      ANTHROPIC_FEDERATION_RULE_ID: 'worker',
      ANTHROPIC_ORGANIZATION_ID: '00000000-0000-0000-0000-000000000000',
      ANTHROPIC_IDENTITY_TOKEN_FILE: file,
    });
    expect(printed).toBe(ANSWER);
    await callsOf('job', messages, since);
  });

  it('gets its token from `postern token` as apiKeyHelper', async () => {
    const settings = join(home, 'settings.json');
    await writeFile(settings, JSON.stringify({ apiKeyHelper: 'postern token' }));
    const since = messages().length;
    const env = { ANTHROPIC_BASE_URL: gateway.base };
    expect(await runClient([program, '--settings', settings, '-p', QUESTION], env)).toBe(ANSWER);
    await callsOf(jane, messages, since);
  });
});

describe(`Codex ${CODEX}`, () => {
  let script: string;
  beforeAll(async () => {
    script = await codex();
    await mkdir(join(home, '.codex'));
  }, LONG_MS);

  /** The configuration of a guide, with the address of this gateway. */
  async function configure(page: string, text: string): Promise<void> {
    const found = fences(read(page)).find(({ language, code }) => language === 'toml' && code.includes(text));
    const config = found!.code.replace(/base_url = ".*"/, `base_url = "${gateway.postern.url}/v1"`);
    expect(config).toContain(gateway.postern.url);
    await writeFile(join(home, '.codex/config.toml'), config);
  }

  const ask = (env: Record<string, string> = {}) =>
    runClient([process.execPath, script, 'exec', '--skip-git-repo-check', QUESTION], env);

  it('gets its token from `postern token` as auth.command, as the guide says', async () => {
    await configure('docs/guides/sign-in-from-clients.md', 'command = "postern"');
    const since = responses().length;
    expect(await ask()).toContain(ANSWER);
    await callsOf(jane, responses, since);
  });

  it('gets it from the environment, as the guide says', async () => {
    await configure('docs/guides/coding-agents.md', 'env_key = "POSTERN_KEY"\nwire_api');
    const { stdout: token } = await run(helper, ['token'], { env: { HOME: home, PATH: process.env.PATH } });
    const since = responses().length;
    expect(await ask({ POSTERN_KEY: token.trim() })).toContain(ANSWER);
    await callsOf(jane, responses, since);
  });
});

describe('SDKs that take a function as apiKey', () => {
  const token = async () => {
    const { stdout } = await run(helper, ['token'], { env: { HOME: home, PATH: process.env.PATH } });
    return stdout.trim();
  };

  it("OpenAI's SDK gets its token from `postern token`, and a new one after a renewal", async () => {
    const client = new OpenAI({ baseURL: `${gateway.postern.url}/v1`, apiKey: token, maxRetries: 0 });
    const since = responses().length;
    const first = await token();
    for (let call = 0; call < 2; call++) {
      const { output_text: text } = await client.responses.create({ model: 'gpt-test', input: QUESTION });
      expect(text).toBe(ANSWER);
      await makeDue();
    }
    expect(await token()).not.toBe(first);
    await callsOf(jane, responses, since);
  });

  it("Anthropic's SDK gets its token from `postern token`", async () => {
    const client = new Anthropic({ baseURL: gateway.base, apiKey: token, maxRetries: 0 });
    const since = messages().length;
    const stream = client.messages.stream({
      model: 'claude-test',
      max_tokens: 64,
      messages: [{ role: 'user', content: QUESTION }],
    });
    expect(await stream.finalText()).toBe(ANSWER);
    await callsOf(jane, messages, since);
  });

  /** As after half of the life of the token. */
  async function makeDue(): Promise<void> {
    const file = join(home, '.config/postern/credentials.json');
    const stored = JSON.parse(await readFile(file, 'utf8')) as [string, object][];
    const due = stored.map(([url, signIn]) => [url, { ...signIn, issuedAt: new Date(0).toISOString() }]);
    await writeFile(file, JSON.stringify(due));
  }
});
