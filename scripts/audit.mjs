// `npm run audit`: known vulnerabilities in shipped packages, as the registry reports them; fails for high and critical ones. A
// registry that cannot be reached, or has no such service, is not an error of the code: it fails nothing, and is said.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './prepare.mjs';

const MAX_MS = 30_000;
const ARGS = [
  'audit',
  '--json',
  '--omit=dev',
  '--package-lock-only',
  '--fetch-timeout=10000',
  '--fetch-retries=0',
];

for (const [what, folder] of [
  ['the gateway', root],
  ['the console', join(root, 'console')],
]) {
  const answer = audit(folder);
  if (answer === null) {
    console.log(`Packages of ${what}: not audited, the registry has not reported on them.`);
    continue;
  }
  for (const { name, severity, range } of Object.values(answer.vulnerabilities))
    console.log(`${severity}: ${name} ${range}`);
  const { total, high, critical } = answer.metadata.vulnerabilities;
  console.log(
    `Packages of ${what}: ${total} known vulnerabilities, ${high} of them high, ${critical} critical.`,
  );
  if (high + critical > 0) process.exitCode = 1;
}

/** @returns null if the registry has not reported */
function audit(cwd) {
  const { stdout } = spawnSync('npm', ARGS, {
    ...{ cwd, encoding: 'utf8', timeout: MAX_MS, maxBuffer: 1e8 },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const answer = JSON.parse(stdout ?? '');
    return answer.metadata?.vulnerabilities === undefined ? null : answer;
  } catch {
    return null;
  }
}
