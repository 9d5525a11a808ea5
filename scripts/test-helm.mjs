// `npm run test:helm`: lints and renders the chart with helm: the one that HELM names, else one that Go installs, in some
// minutes the first time. A command of its own for that reason.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VERSION = 'v3.19.0';
const folder = join(tmpdir(), `postern-helm-${VERSION}`);
const installed = join(folder, 'helm');

const helm = process.env.HELM || (existsSync(installed) ? installed : install());
if (helm !== null) {
  process.env.HELM = helm;
  process.argv.push('--tier', 'helm');
  await import('./test.mjs');
}

/** @returns null if nothing was installed; the reason is printed */
function install() {
  if (spawnSync('go', ['version']).status !== 0) {
    console.log(
      'Skipped: the tests of the chart need helm, or Go to install it. Set HELM to the path of a helm 3.',
    );
    return null;
  }
  console.log(`Installing helm ${VERSION} with Go, once, which takes some minutes ...`);
  mkdirSync(folder, { recursive: true });
  const { status } = spawnSync('go', ['install', `helm.sh/helm/v3/cmd/helm@${VERSION}`], {
    env: { ...process.env, GOBIN: folder },
    stdio: 'inherit',
  });
  if (status === 0) return installed;
  console.error('Failed: Go could not install helm. Set HELM to the path of a helm 3.');
  process.exitCode = 1;
  return null;
}
