// What one start of a built checkout costs, and what the gateway holds and does once it is idle.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startArgs } from './contenders/postern.mjs';
import { treeMicros } from './cpu-time.mjs';
import { residentBytes } from './memory.mjs';

/**
 * @param watchMs for which it is watched after `idleMs`; 0: not at all
 * @param restMs until its memory is read again after that
 * @returns ms of processor time and of time until it is ready, MB resident after `idleMs`, then the part of a core that it
 *   takes, in percent, and how often its threads wake up a second, and MB resident at rest
 */
export async function measureStart(
  workplace,
  { name, folder, database },
  { node, nodeArgs = [], idleMs, watchMs = 0, restMs = 0 },
) {
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
  const idle = watchMs > 0 ? await watchIdle(pid, watchMs) : {};
  await sleep(restMs);
  const restMb = residentBytes(pid) / 1e6;
  await stop();
  return { cpuMs, wallMs: found.at - begin, idleMb, ...idle, restMb };
}

async function watchIdle(pid, watchMs) {
  const before = { at: performance.now(), micros: treeMicros(pid), wakeUps: wakeUpsOf(pid) };
  await sleep(watchMs);
  const ms = performance.now() - before.at;
  return {
    idlePercent: (treeMicros(pid) - before.micros) / (ms * 10),
    wakeUps: (wakeUpsOf(pid) - before.wakeUps) / (ms / 1_000),
  };
}

/** How often the threads of a process have waited for something so far: voluntary context switches, proc(5). */
function wakeUpsOf(pid) {
  const ofThread = (thread) =>
    Number(
      /^voluntary_ctxt_switches:\s+(\d+)/m.exec(
        readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'),
      )[1],
    );
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + ofThread(thread), 0);
}
