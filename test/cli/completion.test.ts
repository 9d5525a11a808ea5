import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commands } from '../docs/reference/cli.js';
import { runHere } from './run-here.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-cli-'));
  await writeFile(join(folder, 'completion'), (await runHere(['completion', 'bash'])).stdout);
});
afterAll(() => rm(folder, { recursive: true }));

/** What bash offers for the last word of a line. */
function offered(...words: string[]): string[] {
  const script = `
    source ${join(folder, 'completion')}
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _postern
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync('bash', ['-c', script, 'bash', ...words], { encoding: 'utf8' });
  return output.split('\n').filter((line) => line !== '');
}

it('offers the commands and options of each place, in bash', () => {
  expect(offered('postern', '')).toEqual(
    expect.arrayContaining(['keys', 'usage', 'completion', '--url', '--version']),
  );
  expect(offered('postern', 'ke')).toEqual(['keys']);
  expect(offered('./postern', 'keys', 're')).toEqual(['revoke']);
  expect(offered('postern', 'keys', 'rotate', 'search/ci', '--g')).toEqual(['--grace-seconds']);
  expect(offered('postern', '--url', 'keys', 'teams', 'l')).toEqual(['list']);
  expect(offered('postern', 'keys', 'list', '--team', 'cr')).toEqual([]);
  expect(offered('postern', 'usage', '--no-c')).toEqual(['--no-color']);
});

it.each(['bash', 'zsh', 'fish'])('has every command and option for %s', async (shell) => {
  const { code, stdout } = await runHere(['completion', shell]);
  expect(code).toBe(0);
  const missing = (await commands()).flatMap(({ path, options }) =>
    [...path, ...options.map((option) => (shell === 'fish' ? `-l ${option.slice(2)}` : option))].filter(
      (word) => !stdout.includes(word),
    ),
  );
  expect(missing).toEqual([]);
});

it('rejects another shell and names the ones there are', async () => {
  const { code, stderr } = await runHere(['completion', 'tcsh']);
  expect([code, stderr]).toEqual([1, expect.stringContaining('Allowed choices are bash, zsh, fish.')]);
});
