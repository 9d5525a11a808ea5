// `npm run audit`: known vulnerabilities in shipped packages, as the registry reports them; fails for high and critical ones. A
// registry that cannot be reached, or has no such service, is not an error of the code and fails nothing.
import { spawnSync } from 'node:child_process';

const LONGEST_MS = 30_000;

const { stdout } = spawnSync(
  'npm',
  ['audit', '--json', '--omit=dev', '--package-lock-only', '--fetch-timeout=10000', '--fetch-retries=0'],
  { encoding: 'utf8', timeout: LONGEST_MS, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1e8 },
);

function answered() {
  try {
    const answer = JSON.parse(stdout ?? '');
    return answer.metadata?.vulnerabilities === undefined ? null : answer;
  } catch {
    return null;
  }
}

const answer = answered();
if (answer === null) console.log('Not audited: the registry did not respond.');
else {
  for (const { name, severity, range } of Object.values(answer.vulnerabilities))
    console.log(`${severity}: ${name} ${range}`);
  const { total, high, critical } = answer.metadata.vulnerabilities;
  console.log(
    `${total} known vulnerabilities in shipped packages, ${high} of them high, ${critical} critical.`,
  );
  if (high + critical > 0) process.exitCode = 1;
}
