// Postern as `npm run start:prod` runs it, key check and durable rows on: a database of its own on the run's Postgres, a
// journal on the disk, the key its first start issued.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../workplace.mjs';

const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
// `exec node <flags> <entry>`
const [ENTRY, ...FLAGS_BACKWARDS] = scripts['start:prod'].split(' ').slice(2).reverse();
export const NODE_FLAGS = FLAGS_BACKWARDS.reverse();

let started = 0;

/** `nodeArgs` go before the entry; `env` is added to the gateway's. */
export async function startPostern(bench, { nodeArgs = bench.nodeArgs ?? [], env = {} } = {}) {
  return startGateway(bench, 'postern', [...NODE_FLAGS, ...nodeArgs, join(root, ENTRY)], env);
}

/** Anything that starts like Postern, says the same and writes the same rows. */
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
