// nginx doing what of Postern it can: the key by a map, the provider's secret in its place, no log.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { version } from '../machine.mjs';

/** The program, or null where it is not installed. */
export function nginxProgram() {
  const found = (program) => version(program, ['-v'], /nginx\/(\S+)/) !== null;
  return ['nginx', '/usr/sbin/nginx'].find(found) ?? null;
}

export async function startNginx({ workplace, provider }) {
  const program = nginxProgram();
  if (program === null) return null;
  const key = `Bearer key-${'x'.repeat(38)}`;
  const port = await workplace.freePort();
  const folder = await workplace.subfolder(`nginx-${port}`);
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr error;
events { worker_connections 8192; }
http {
  access_log off; tcp_nodelay on; keepalive_requests 1000000000; keepalive_timeout 75s;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  client_max_body_size 0;
  map_hash_bucket_size 128;
  map $http_authorization $credential { default ""; "${key}" "Bearer sk-provider"; }
  upstream provider { server 127.0.0.1:${provider.port}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    if ($credential = "") { return 401; }
    location / {
      proxy_pass http://provider;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Authorization $credential;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 900s;
    }
  }
}
`,
  );
  const { pid, stop } = await workplace.start([program, '-p', folder, '-c', file], {
    cores: workplace.cores.gateway,
    port,
    name: 'nginx',
  });
  return { name: 'nginx', port, pid, stop, headers: { Authorization: key } };
}
