import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../support/eventually.js';

/** Version of the nginx on this machine, or null. */
export function nginxVersion(): string | null {
  try {
    // nginx says its version on standard error.
    return execFileSync('sh', ['-c', 'nginx -v 2>&1'], { encoding: 'utf8' }).trim();
  } catch {
    return null;
  }
}

/** An nginx that passes everything on to one provider, on a socket of its own. */
export class Nginx {
  private constructor(
    readonly socketPath: string,
    private readonly folder: string,
    private readonly child: ChildProcess,
  ) {}

  /** @param upstream host and port */
  static async start(upstream: string): Promise<Nginx> {
    const folder = await mkdtemp(join(tmpdir(), 'postern-nginx-'));
    const socketPath = join(folder, 'listen');
    await mkdir(join(folder, 'temp'));
    const temps = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((name) => `${name}_temp_path ${folder}/temp/${name};`)
      .join('\n');
    const config = `
      daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
      events { worker_connections 512; }
      http {
        access_log off; ${temps}
        large_client_header_buffers 8 64k; client_header_buffer_size 64k; client_max_body_size 0;
        underscores_in_headers on;
        server {
          listen unix:${socketPath};
          location / { proxy_pass http://${upstream}; proxy_http_version 1.1; }
        }
      }`;
    await writeFile(join(folder, 'nginx.conf'), config);
    const child = spawn(
      'nginx',
      ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', join(folder, 'error.log')],
      {
        stdio: 'ignore',
      },
    );
    const nginx = new Nginx(socketPath, folder, child);
    await eventually(async () => {
      const socket = connect(socketPath);
      const open = await once(socket, 'connect').then(
        () => true,
        () => false,
      );
      socket.destroy();
      return open;
    });
    return nginx;
  }

  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'exit');
    await rm(this.folder, { recursive: true, force: true });
  }
}
