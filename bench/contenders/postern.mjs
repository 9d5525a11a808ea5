// Postern as `npm run start:prod` runs it, key check and durable rows on: a database of its own on the run's Postgres, a
// journal on the disk, the key its first start issued.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../workplace.mjs';

const { flags, entry } = startArgs(root);
export const NODE_FLAGS = flags;

let started = 0;

/** `nodeArgs` go before the entry; `env` is added to the gateway's. */
export async function startPostern(bench, { nodeArgs = bench.nodeArgs ?? [], env = {} } = {}) {
  return startGateway(bench, 'postern', [...flags, ...nodeArgs, entry], env);
}

/** Arguments of Node in a checkout's `start:prod`, which is `exec node <flags> <entry>`. */
export function startArgs(checkout) {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
  const flags = scripts['start:prod'].split(' ').slice(2);
  const entry = join(checkout, flags.pop());
  return { flags, entry };
}

/** Starts anything that starts like Postern, prints the same and writes the same rows. */
export async function startGateway(
  { workplace, provider, postgres, node = process.execPath },
  name,
  args,
  env = {},
) {
  const database = await postgres.createDatabase();
  const { pid, found, stop, printed } = await workplace.start([node, ...args], {
    cores: workplace.cores.gateway,
    ready: (text) => {
      const url = /ready on http:\/\/127\.0\.0\.1:(\d+)\n/.exec(text);
      const key = / once: (ptn_\S+)\n/.exec(text);
      return url && key && { port: Number(url[1]), key: key[1] };
    },
    env: {
      PORT: '0',
      DATA_DIR: join(workplace.folder, `${name}-${++started}`),
      DATABASE_URL: database.url,
      PROVIDER_URL: `http://127.0.0.1:${provider.port}`,
      PROVIDER_KEY: 'sk-provider',
      LOG_LEVEL: 'warn',
      SHUTDOWN_GRACE_MS: '0',
      ...env,
    },
    name,
  });
  const { port, key } = found;
  return { name, port, pid, stop, printed, database, headers: { Authorization: `Bearer ${key}` } };
}
