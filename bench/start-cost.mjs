// What one start of a built checkout costs, and what the gateway holds once it is idle.
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startArgs } from './contenders/postern.mjs';
import { treeMicros } from './cpu-time.mjs';
import { residentBytes } from './memory.mjs';

/** @returns ms of processor time and of time until it is ready, and MB resident after `idleMs` */
export async function measureStart(workplace, { name, folder, database }, { node, nodeArgs = [], idleMs }) {
  const { flags, entry } = startArgs(folder);
  const begin = performance.now();
  const { pid, stop, found } = await workplace.start([node, ...flags, ...nodeArgs, entry], {
    name,
    cores: workplace.cores.gateway,
    ready: (text) => /ready on /.test(text) && { at: performance.now() },
    env: {
      PORT: '0',
      DATA_DIR: join(workplace.folder, name.replaceAll(' ', '-')),
      DATABASE_URL: database.url,
      PROVIDER_URL: 'http://127.0.0.1:9',
      PROVIDER_KEY: 'sk-provider',
      LOG_LEVEL: 'warn',
      SHUTDOWN_GRACE_MS: '0',
    },
  });
  const cpuMs = treeMicros(pid) / 1_000;
  await sleep(idleMs);
  const idleMb = residentBytes(pid) / 1e6;
  await stop();
  return { cpuMs, wallMs: found.at - begin, idleMb };
}
