// The memory that a process holds.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const SAMPLE_MS = 50;

/** Resident bytes of a process; null without /proc. */
export function residentBytes(pid) {
  try {
    const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1_024;
  } catch {
    return null;
  }
}

/** The most it held at any sample for so long. */
export async function peakBytes(pid, ms) {
  let peak = residentBytes(pid);
  for (const deadline = performance.now() + ms; performance.now() < deadline; await sleep(SAMPLE_MS)) {
    peak = Math.max(peak ?? 0, residentBytes(pid) ?? 0) || null;
  }
  return peak;
}
