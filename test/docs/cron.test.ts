import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { read } from './pages.js';

const POSTERN = resolve(__dirname, '../../dist/src/cli/start.js');

let gateway: TestGateway;
let folder: string;
beforeAll(async () => {
  gateway = await startTestGateway();
  folder = await mkdtemp(join(tmpdir(), 'postern-cron-'));
  const script = async (name: string, text: string) => {
    await writeFile(join(folder, name), `#!/bin/sh\n${text}\n`);
    await chmod(join(folder, name), 0o755);
  };
  await script('postern', `exec '${process.execPath}' '${POSTERN}' "$@"`);
  await script('mail', `echo "$@" > '${folder}/mailed'; cat >> '${folder}/mailed'`);
  await writeFile(join(folder, 'token'), `${ADMIN_TOKEN}\n`);
});
afterAll(async () => {
  await gateway.stop();
  await rm(folder, { recursive: true });
});

/** Runs the table of a page as cron does: with its assignments alone, and up to a `%` that has no backslash. */
async function runAsCron(url: string): Promise<{ code: number; stderr: string; mailed: string }> {
  const [, text] = /```sh\n# \/etc\/cron\.d\/postern-usage\n([^]*?)```/.exec(read('docs/guides/costs.md'))!;
  const lines = text!.trim().split('\n');
  const env = Object.fromEntries(lines.slice(0, -1).map((line) => line.split('=', 2) as [string, string]));
  const [, command] = /^(?:\S+ ){5}reports (.*)$/.exec(lines.at(-1)!)!;
  const own = { POSTERN_URL: url, POSTERN_ADMIN_TOKEN_FILE: join(folder, 'token') };
  expect(Object.keys(env)).toEqual(expect.arrayContaining(Object.keys(own)));
  const [shown] = command!.split(/(?<!\\)%/);
  const args = ['-c', shown!.replaceAll('\\%', '%')];
  const PATH = `${folder}:${env.PATH}`;
  await rm(join(folder, 'mailed'), { force: true });
  const ran = await new Promise<{ code: number; stderr: string }>((done) => {
    const options = { cwd: folder, env: { ...env, ...own, PATH, HOME: folder, SHELL: '/bin/sh' } };
    execFile('/bin/sh', args, options, (error, _, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), stderr }),
    );
  });
  const mailed = await readFile(join(folder, 'mailed'), 'utf8').catch(() => '');
  return { ...ran, mailed };
}

it('the table for cron mails the report of the last month', async () => {
  const { code, stderr, mailed } = await runAsCron(gateway.url);
  expect([code, stderr]).toEqual([0, '']);
  expect(mailed).toMatch(/^-s Usage of last month finance@example\.com\ntime_zone,from,to,month,team,/);
});

it('it mails no report if the command fails, and cron has the error', async () => {
  const { code, stderr, mailed } = await runAsCron('http://127.0.0.1:1');
  expect([code, mailed]).toEqual([1, '']);
  expect(stderr).toContain('cannot be reached');
});
