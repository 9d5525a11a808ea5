// The file tree of the image, without Docker: what its Dockerfile copies and runs, in folders of this machine. What needs the
// base image (users, volumes) is left to Docker.
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { StepError } from '../prepare.mjs';
import { run, say } from './commit.mjs';

const START_MS = 120_000;

/** Its stages, each a list of instructions. */
function stagesOf(dockerfile) {
  const text = dockerfile.replace(/^\s*#.*\n/gm, '').replace(/\\\n/g, ' ');
  return text
    .split(/^(?=FROM )/m)
    .filter((stage) => stage.startsWith('FROM '))
    .map((stage) =>
      stage
        .trim()
        .split('\n')
        .filter(Boolean)
        .map((line) => /^(\S+)\s+(.*)$/.exec(line).slice(1)),
    );
}

/**
 * @param checkout where the Dockerfile is
 * @param tree a new folder, for what the image has in its working folder
 */
export function buildImage({ checkout, tree }) {
  const [build, last] = stagesOf(readFileSync(join(checkout, 'Dockerfile'), 'utf8'));
  const stage = `${tree}-build`;
  mkdirSync(stage, { recursive: true });
  for (const [instruction, rest] of build) {
    if (instruction === 'COPY') copy(checkout, stage, rest);
    else if (instruction === 'RUN') {
      say(`Building the image: ${rest.slice(0, 70)}`);
      run(stage, 'sh', '-ec', rest);
    }
  }
  mkdirSync(tree, { recursive: true });
  for (const [instruction, rest] of last) {
    if (instruction !== 'COPY') continue;
    const from = /^--from=build /.test(rest);
    // In the stage, the working folder is /app.
    copy(from ? stage : checkout, tree, rest.replace(/^--from=build /, '').replaceAll('/app/', './'));
  }
  rmSync(stage, { recursive: true });
}

function copy(from, to, names) {
  const paths = names.trim().split(/\s+/);
  const target = paths.pop();
  for (const path of paths) {
    if (!existsSync(join(from, path)))
      throw new StepError(`The Dockerfile copies ${path}, which is not there.`, 1);
    const named = target.endsWith('/') ? join(to, target, path.split('/').at(-1)) : join(to, target);
    mkdirSync(dirname(named), { recursive: true });
    cpSync(join(from, path), named, { recursive: true, verbatimSymlinks: true });
  }
}

/**
 * Starts the tree as the image does, on an empty Postgres, and ends it.
 *
 * @param root a built checkout, whose embedded Postgres it gets: the image has none
 * @throws StepError if it is not ready, does not serve the console, or does not end as it should
 */
export async function startImage(tree, root) {
  const [, last] = stagesOf(readFileSync(join(root, 'Dockerfile'), 'utf8'));
  const [command, ...args] = JSON.parse(last.find(([instruction]) => instruction === 'CMD')[1]);
  const variables = Object.fromEntries(
    last
      .filter(([instruction]) => instruction === 'ENV')
      .flatMap(([, rest]) => rest.split(' ').map((pair) => pair.split('='))),
  );
  const { startEmbeddedPostgres } = await import(
    join(root, 'dist/src/embedded-postgres/embedded-postgres.js')
  );
  const data = mkdtempSync(join(tmpdir(), 'postern-image-data-'));
  const postgres = await startEmbeddedPostgres({ dataDir: join(data, 'postgres'), fsync: false });
  try {
    const port = await unusedPort();
    const env = {
      PATH: process.env.PATH,
      ...variables,
      ...{
        HOST: '127.0.0.1',
        PORT: String(port),
        DATA_DIR: join(data, 'gateway'),
        DATABASE_URL: postgres.url,
      },
      ...{ PROVIDER_URL: 'https://provider.invalid', MASTER_KEY: Buffer.alloc(32, 7).toString('base64') },
      ADMIN_TOKEN: 'dry-run-of-a-release-with-an-admin-token',
    };
    const child = spawn(command === 'node' ? process.execPath : command, args, { cwd: tree, env });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (said += bytes));
    const ended = new Promise((done) => child.once('close', (code) => done(code)));
    const url = `http://127.0.0.1:${port}`;
    await isReady(url, ended, () => said);
    const page = await fetch(`${url}/console/`);
    if (page.status !== 200 || !(await page.text()).includes('<script'))
      throw new StepError(`The image does not serve the console: ${page.status}`, 1);
    child.kill('SIGTERM');
    const code = await ended;
    if (code !== 0) throw new StepError(`The image ended with ${code}:\n${said}`, 1);
    say('The file tree of the image starts, serves the console and ends');
  } finally {
    await postgres.stop();
    rmSync(data, { recursive: true, force: true });
  }
}

async function isReady(url, ended, said) {
  const until = Date.now() + START_MS;
  let isGone = false;
  void ended.then(() => (isGone = true));
  while (Date.now() < until && !isGone) {
    const response = await fetch(`${url}/health/ready`).catch(() => null);
    if (response?.status === 200) return;
    await new Promise((go) => setTimeout(go, 200));
  }
  throw new StepError(`The image is not ready:\n${said()}`, 1);
}

async function unusedPort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}
