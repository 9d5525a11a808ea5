import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeInBrowser, openPage } from '../../console/browser.js';
import { eventually } from '../../support/eventually.js';
import { PROVIDER_KEY } from '../../support/gateway.js';
import { CLAUDE_CODE, claudeCode } from './client-packages.js';
import { type ClientGateway, startClientGateway } from './client-gateway.js';
import { ANSWER } from './model-provider.js';
import { hasTmux, Terminal } from './terminal.js';

// The program that people have, with managed settings as device management writes them, an OpenID provider, and a browser.

/** For what comes over the network the first time. */
const LONG_MS = 900_000;
const ANSWERED = new RegExp(`● ${ANSWER}`);
const MESSAGES = '/v1/messages';

/** Runs a program with its own /etc: the system's, and a file of managed settings. Nobody else sees them. */
const WITH_SETTINGS = `set -e; etc=$1; settings=$2; shift 2
mount -t tmpfs none "$etc"; cp -a /etc/. "$etc"; mkdir -p "$etc/claude-code"
cp "$settings" "$etc/claude-code/managed-settings.json"; mount --bind "$etc" /etc; exec "$@"`;
const UNSHARE = ['unshare', '--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])];

const isPossible = process.platform === 'linux' && (await hasTmux());
if (!isPossible) process.stdout.write('Not run: Claude Code in a terminal, which needs Linux and tmux.\n');

(isPossible ? describeInBrowser : describe.skip)(`Claude Code ${CLAUDE_CODE}`, () => {
  const gateway = {} as ClientGateway;
  let program: string;
  let home: string;
  let command: string[];
  beforeAll(async () => {
    for (const level of ['warn', 'info'] as const) jest.spyOn(console, level).mockImplementation(() => {});
    program = await claudeCode();
    Object.assign(gateway, await startClientGateway({ claude_code: { model: 'haiku' } }));
    home = await mkdtemp(join(tmpdir(), 'postern-claude-'));
    for (const name of ['work', 'etc']) await mkdir(join(home, name));
    const managed = { forceLoginMethod: 'gateway', forceLoginGatewayUrl: gateway.base };
    await writeFile(join(home, 'managed.json'), JSON.stringify(managed));
    // As after a first start, in which it asks for colours and whether the folder is trusted.
    const projects = { [join(home, 'work')]: { hasTrustDialogAccepted: true } };
    const started = { hasCompletedOnboarding: true, theme: 'dark', projects };
    await writeFile(join(home, '.claude.json'), JSON.stringify(started));
    const withSettings = ['sh', '-c', WITH_SETTINGS, 'sh', join(home, 'etc'), join(home, 'managed.json')];
    command = [...UNSHARE, ...withSettings, program];
  }, LONG_MS);
  afterAll(async () => {
    await gateway.stop();
    await rm(home, { recursive: true });
  });

  /** Nothing of the machine's own, and no browser that it could open by itself. */
  const open = () => {
    const env = { HOME: home, PATH: process.env.PATH!, TERM: 'xterm-256color', LANG: 'C.UTF-8' };
    return Terminal.open(command, { ...env, BROWSER: 'true' }, join(home, 'work'));
  };
  const calls = () => gateway.provider.at(MESSAGES);
  const rows = (sql: string) => gateway.postern.database.query<Record<string, unknown>>(sql);
  const signIns = () => rows('SELECT surface, program, end_reason FROM sign_in ORDER BY created_at');
  const renewals = async () => (await rows('SELECT FROM refresh_token WHERE used_at IS NOT NULL')).length;

  /** What a person does in the browser. */
  async function confirmCode(code: string): Promise<void> {
    gateway.issuer.user = 'jane';
    const { page, done } = await openPage(gateway.postern.url);
    await page.goto(`${gateway.postern.url}/device`);
    await page.getByLabel('Code').fill(code);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Jane Doe (jane@example.com)').waitFor();
    await page.getByText('Claude Code, it says').waitFor();
    await page.getByRole('button', { name: 'Sign in this terminal' }).click();
    await page.getByText('Go back to the terminal').waitFor();
    await done(/^request to http:\/\/127\.0\.0\.1:\d+\/(auth|interaction)/);
  }

  /** From `/login` to where somebody types. @param isNew whether this computer has not seen the gateway yet */
  async function login(terminal: Terminal, isNew: boolean): Promise<void> {
    await terminal.say('/login');
    await terminal.until(/Enter to connect/);
    expect(await terminal.screen()).toContain(gateway.base);
    await terminal.press('Enter');
    if (isNew) await terminal.choose('Yes, trust this gateway');
    const [, code] = await terminal.until(/Code:\s+([A-Z]{4}-[A-Z]{4})/);
    await confirmCode(code!);
    await terminal.until(/Signed in to Cloud gateway as jane@example\.com/);
    await terminal.choose('Yes, continue');
    await terminal.until(/Connected to Cloud gateway/);
    await terminal.press('Enter');
  }

  it(
    'signs a person in, who types no key, renews its token before calls, and obeys the settings of the team',
    async () => {
      const terminal = await open();
      const from = performance.now();
      await login(terminal, true);
      await terminal.say('first question');
      await terminal.until(ANSWERED);
      const seconds = (performance.now() - from) / 1_000;
      process.stdout.write(
        `Claude Code ${CLAUDE_CODE}: ${seconds.toFixed(0)} s from its start to the first answer\n`,
      );
      for (const { headers, body } of calls()) {
        expect(headers).toMatchObject({ 'x-api-key': PROVIDER_KEY });
        expect(JSON.stringify(headers)).not.toMatch(/pt[nrd]_/);
        expect((JSON.parse(body) as { model: string }).model).toContain('haiku');
      }
      expect(await signIns()).toEqual([
        { surface: 'claude_code', program: expect.stringContaining(CLAUDE_CODE) as string, end_reason: null },
      ]);
      const row = await eventually(async () => (await rows('SELECT * FROM request_log'))[0]);
      expect(row).toMatchObject({ subject: 'sso:jane@example.com', status: 200, prompt_tokens: 12 });

      // Tokens of 5 minutes are due for a renewal at once.
      const before = await renewals();
      await terminal.say('second question');
      await eventually(async () => (await renewals()) > before);
      await terminal.until(/second question[^]*● /);
      await terminal.close();
    },
    LONG_MS,
  );

  it(
    'works in two terminals that renew on their own, also when one has slept meanwhile',
    async () => {
      const one = await open();
      const two = await open();
      await one.until(/Cloud gateway/);
      await two.until(/Cloud gateway/);
      await one.say('question of the first');
      await one.until(ANSWERED);
      await two.say('question of the second');
      await two.until(ANSWERED);
      // The second has renewed meanwhile. To the first, it is as if it had slept for an hour since: this version reads what the
      // other has stored, and an earlier one sent the spent token first. Neither signs anybody out.
      await rows(`UPDATE refresh_token SET used_at = used_at - interval '1 hour' WHERE used_at IS NOT NULL`);
      await one.say('question after a sleep');
      await one.until(/question after a sleep[^]*● The answer/);
      expect(await signIns()).toHaveLength(1);
      expect(await rows('SELECT FROM refresh_token WHERE used_at IS NULL')).toHaveLength(1);
      const spent = await rows('SELECT FROM sign_in WHERE spent_refused_at IS NOT NULL');
      process.stdout.write(`Spent refresh tokens that were sent: ${spent.length}\n`);

      // Once an administrator has ended the sign-in, neither calls any more.
      const { data } = await gateway.postern.admin<{ data: { id: string }[] }>(
        'GET',
        '/sign-ins?state=active',
      );
      const count = calls().length;
      await gateway.postern.admin('DELETE', `/sign-ins/${data[0]!.id}`);
      for (const terminal of [one, two]) {
        await terminal.say('question after the end');
        await terminal.until(/Please run \/login/);
      }
      expect(calls()).toHaveLength(count);

      // A new sign-in in the same terminal, and its end by the client.
      await one.say('/clear');
      await login(one, false);
      await one.say('question after the sign-in');
      await one.until(/question after the sign-in[^]*● The answer/);
      await one.say('/logout');
      const signIn = { surface: 'claude_code', program: expect.anything() as string };
      await eventually(async () => (await signIns()).at(-1)?.end_reason !== null);
      expect(await signIns()).toEqual([
        { ...signIn, end_reason: 'ended' },
        { ...signIn, end_reason: 'signed_out' },
      ]);
      const credentials = join(home, '.claude/.credentials.json');
      await eventually(
        async () => !existsSync(credentials) || !/pt[nr]_/.test(await readFile(credentials, 'utf8')),
      );
      for (const terminal of [one, two]) await terminal.close();
    },
    LONG_MS,
  );
});
