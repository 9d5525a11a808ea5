import { spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';

export interface Nginx {
  /** https, with a certificate of its own. */
  url: string;
  certificate: string;
  stop(): Promise<void>;
}

/** Null where a real nginx can be run; else why not. */
export function nginxMissing(): string | null {
  const missing = ['nginx -v', 'openssl version'].filter((command) => {
    const [program, argument] = command.split(' ') as [string, string];
    return spawnSync(program, [argument]).status !== 0;
  });
  return missing.length === 0
    ? null
    : `not found: ${missing.map((command) => command.split(' ')[0]).join(', ')}`;
}

/**
 * nginx with deploy/nginx.conf, between TLS on a loopback port and this gateway.
 *
 * @param gatewayPort where the gateway listens
 */
export async function startNginx(gatewayPort: number): Promise<Nginx> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-nginx-'));
  const certificate = join(folder, 'gateway.crt');
  const key = join(folder, 'gateway.key');
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const how = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const made = spawnSync('openssl', ['req', ...how, '-keyout', key, '-out', certificate, ...subject]);
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr.toString()}`);

  // nginx cannot listen on "any free port"; this one is below the ephemeral range, so that no connection takes it.
  const port = await eventually(async () => {
    const one = randomInt(16_000, 32_000);
    return (await answers(one)) ? null : one;
  });
  const site = (await readFile(join(process.cwd(), 'deploy/nginx.conf'), 'utf8'))
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${gatewayPort}`)
    .replaceAll('listen 443', `listen 127.0.0.1:${port}`)
    .replaceAll('/etc/nginx/', `${folder}/`);
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const config = join(folder, 'nginx.conf');
  await writeFile(
    config,
    `${process.getuid?.() === 0 ? 'user root;\n' : ''}daemon off;\nworker_processes 1;\npid ${folder}/nginx.pid;
error_log stderr error;\nevents {}\nhttp {\naccess_log off;\n${own.join('\n')}\n${site}}\n`,
  );
  const child = spawn('nginx', ['-p', folder, '-c', config, '-e', 'stderr'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  let running = true;
  const exited = new Promise<void>((resolve) =>
    child.once('exit', () => {
      running = false;
      resolve();
    }),
  );
  await eventually(() => {
    if (!running) throw new Error('nginx did not start');
    return answers(port);
  });
  return {
    url: `https://127.0.0.1:${port}`,
    certificate: await readFile(certificate, 'utf8'),
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
