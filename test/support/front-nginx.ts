import { spawn, spawnSync } from 'node:child_process';
import { readFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from './eventually.js';
import { unusedPort } from './unused-port.js';

export interface Nginx {
  /** https, with a certificate of its own, unless it was started without TLS. */
  url: string;
  certificate: string;
  /** Writes its file again with these gateways only, and has it read, as an operator does before stopping one. */
  use(gatewayPorts: readonly number[]): Promise<void>;
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
 * nginx with deploy/nginx.conf, between TLS on a loopback port and these gateways.
 *
 * @param gatewayPorts where they listen
 * @param change makes the file fit the test, such as `listen … ssl` without `ssl`
 */
export async function startNginx(
  gatewayPorts: readonly number[],
  change: (site: string) => string = (site) => site,
): Promise<Nginx> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-nginx-'));
  const certificate = join(folder, 'gateway.crt');
  const key = join(folder, 'gateway.key');
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const how = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const made = spawnSync('openssl', ['req', ...how, '-keyout', key, '-out', certificate, ...subject]);
  if (made.status !== 0) throw new Error(`openssl: ${made.stderr.toString()}`);

  const port = await unusedPort();
  const site = change(await readFile(join(process.cwd(), 'deploy/nginx.conf'), 'utf8'))
    .replaceAll('listen 443', `listen 127.0.0.1:${port}`)
    .replaceAll('/etc/nginx/', `${folder}/`);
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const config = join(folder, 'nginx.conf');
  const write = (ports: readonly number[]) =>
    writeFile(
      config,
      `${process.getuid?.() === 0 ? 'user root;\n' : ''}daemon off;\nworker_processes 1;\npid ${folder}/nginx.pid;
error_log stderr error;\nevents {}\nhttp {\naccess_log off;\n${own.join('\n')}
${site.replace(/( *server )127\.0\.0\.1:8080(.*\n)/, (_, server: string, rest: string) =>
  ports.map((gateway) => `${server}127.0.0.1:${gateway}${rest}`).join(''),
)}}\n`,
    );
  await write(gatewayPorts);
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
    url: `${/listen .* ssl;/.test(site) ? 'https' : 'http'}://127.0.0.1:${port}`,
    certificate: await readFile(certificate, 'utf8'),
    use: async (ports) => {
      await write(ports);
      child.kill('SIGHUP');
    },
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
