import { readFile } from 'node:fs/promises';

/** Processes of a gateway, in the order of their starts: its primary's children that are gateways themselves. */
export async function workersOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  const pids = text.trim().split(' ').filter(Boolean).map(Number);
  // One may be gone by now.
  const lines = await Promise.all(
    pids.map(
      async (child) => [child, await readFile(`/proc/${child}/cmdline`, 'utf8').catch(() => '')] as const,
    ),
  );
  // As shipped, or by way of preloaded.mjs.
  return lines.filter(([, line]) => /start\.js|preloaded\.mjs/.test(line)).map(([child]) => child);
}
