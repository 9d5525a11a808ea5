// The stand-in for the closed loop: nginx with a fixed answer, the cheapest server that is installed anywhere.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ANSWER } from './answer.mjs';

export async function startNginxProvider(workplace, program) {
  const port = await workplace.freePort();
  const folder = await workplace.subfolder('provider-nginx');
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `daemon off; worker_processes 1; pid ${folder}/nginx.pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; tcp_nodelay on; keepalive_requests 1000000000; keepalive_timeout 75s;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    default_type application/json;
    location / { return 200 '${ANSWER}'; }
  }
}
`,
  );
  const { pid, stop } = await workplace.start([program, '-p', folder, '-c', file], {
    cores: workplace.cores.others,
    port,
    name: 'nginx as the provider',
  });
  return { kind: 'nginx', port, pid, stop };
}
