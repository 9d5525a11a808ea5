// The cores of a run. What is measured has one core to itself; load, stand-in and Postgres share the others.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** `gateway`: the core of what is measured; `others`: a list for taskset. Null where there is no taskset or one core. */
export function planCores() {
  const allowed = allowedCores();
  if (allowed.length < 2 || !hasTaskset()) return { gateway: null, load: null, others: null };
  // Interrupts tend to land on the first core.
  const gateway = allowed.at(-1);
  const [load, ...rest] = allowed.slice(0, -1);
  return { gateway, load, others: rest.length > 0 ? rest.join(',') : String(load) };
}

/** The command that runs `command` on these cores. */
export function pinned(cores, command) {
  return cores === null ? command : ['taskset', '-c', String(cores), ...command];
}

/** This process, all its threads, and what it starts from here on. */
export function pinSelf(cores) {
  if (cores !== null)
    execFileSync('taskset', ['-a', '-p', '-c', String(cores), String(process.pid)], { stdio: 'ignore' });
}

/** `0-2,5` as [0, 1, 2, 5]. */
export function readCoreList(text) {
  return text.split(',').flatMap((part) => {
    const [from, to = from] = part.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
}

function allowedCores() {
  try {
    const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    return list === undefined ? [] : readCoreList(list);
  } catch {
    return [];
  }
}

function hasTaskset() {
  try {
    execFileSync('taskset', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
