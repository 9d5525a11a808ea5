// How much processor time did a process and its descendants take, and how idle was a core? From Linux's /proc;
// null elsewhere.
import { readdirSync, readFileSync } from 'node:fs';

/** proc(5): times are in clock ticks, and USER_HZ is 100 on every Linux. */
const MICROS_PER_TICK = 10_000;

/** Fields of /proc/<pid>/stat: the name may hold spaces and parentheses, so they are counted from its end. */
export function readStat(text) {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const number = (field) => Number(fields[field - 3]);
  return {
    parent: number(4),
    // utime, stime, and the same of children that have ended and been waited for.
    micros: (number(14) + number(15) + number(16) + number(17)) * MICROS_PER_TICK,
  };
}

/** Microseconds of processor time of a process tree so far: user and system, its ended children too. */
export function treeMicros(root) {
  if (root === undefined || root === null) return null;
  const stats = new Map();
  for (const name of entries('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = read(`/proc/${name}/stat`);
    if (text !== null) stats.set(Number(name), readStat(text));
  }
  if (!stats.has(root)) return null;
  let sum = 0;
  for (const [pid, { micros }] of stats) if (descends(stats, pid, root)) sum += micros;
  return sum;
}

/**
 * Microseconds of processor time of the threads of one process so far, which are counted in nanoseconds: for short rounds, where
 * the hundredths of a second of /proc/<pid>/stat are too coarse. What a thread that has ended took is missing.
 */
export function threadMicros(pid) {
  const nanos = entries(`/proc/${pid}/task`).map((thread) =>
    Number((read(`/proc/${pid}/task/${thread}/schedstat`) ?? '0').split(' ')[0]),
  );
  return nanos.reduce((sum, one) => sum + one, 0) / 1_000;
}

/** The same of a process and its descendants that live. */
export function treeThreadMicros(root) {
  const pids = entries(`/proc/${root}/task`).flatMap((thread) =>
    (read(`/proc/${root}/task/${thread}/children`) ?? '').split(' ').filter(Boolean).map(Number),
  );
  return pids.reduce((sum, pid) => sum + treeThreadMicros(pid), threadMicros(root));
}

/** Idle microseconds of one core so far. */
export function idleMicros(core) {
  if (core === null) return null;
  const line = (read('/proc/stat') ?? '').split('\n').find((text) => text.startsWith(`cpu${core} `));
  if (line === undefined) return null;
  const [, , , , idle, iowait] = line.split(/\s+/).map(Number);
  return (idle + iowait) * MICROS_PER_TICK;
}

/** Takes a reading of each meter at once; `since()` gives the differences, null if a meter has no value. */
export function meters(readings) {
  const take = () => Object.fromEntries(Object.entries(readings).map(([name, reading]) => [name, reading()]));
  const first = take();
  return {
    since() {
      const last = take();
      const difference = (name) =>
        first[name] === null || last[name] === null ? null : last[name] - first[name];
      return Object.fromEntries(Object.keys(first).map((name) => [name, difference(name)]));
    },
  };
}

function descends(stats, pid, root) {
  for (let at = pid; at !== undefined && at !== 0; at = stats.get(at)?.parent) if (at === root) return true;
  return false;
}

function entries(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
