// haproxy doing what of Postern it can: the key by a map, the provider's secret in its place, no log.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { version } from '../machine.mjs';

export async function startHaproxy({ workplace, provider }) {
  const program = ['haproxy', '/usr/sbin/haproxy'].find(
    (name) => version(name, ['-v'], /version (\S+)/) !== null,
  );
  if (program === undefined) return null;
  const key = `key-${'x'.repeat(38)}`;
  const port = await workplace.freePort();
  const folder = await workplace.subfolder(`haproxy-${port}`);
  const map = join(folder, 'keys.map');
  const file = join(folder, 'haproxy.cfg');
  await writeFile(map, `${key} sk-provider\n`);
  await writeFile(
    file,
    `global
  nbthread 1
  maxconn 8192
defaults
  mode http
  timeout connect 10s
  timeout client 900s
  timeout server 900s
  http-reuse always
  option http-no-delay
frontend calls
  bind 127.0.0.1:${port} backlog 4096
  http-request set-var(txn.credential) http_auth_bearer,map_str(${map})
  http-request deny deny_status 401 unless { var(txn.credential) -m found }
  http-request set-header Authorization "Bearer %[var(txn.credential)]"
  default_backend provider
backend provider
  server provider 127.0.0.1:${provider.port} pool-max-conn 4096
`,
  );
  const { pid, stop } = await workplace.start([program, '-db', '-f', file], {
    cores: workplace.cores.gateway,
    port,
    name: 'haproxy',
  });
  return { name: 'haproxy', port, pid, stop, headers: { Authorization: `Bearer ${key}` } };
}
