import { readdir, readFile } from 'node:fs/promises';

/** Ticks of a second in /proc (`getconf CLK_TCK`). */
const TICKS = 100;

/** The processor time of a process with its descendants, also of those that ended and were waited for. */
export async function processorSeconds(root: number): Promise<number> {
  const found = new Map<number, { parent: number; ticks: number }>();
  for (const name of await readdir('/proc')) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '') : '';
    // After the name in brackets: state, parent; utime, stime, cutime and cstime are fields 14 to 17 (proc_pid_stat(5)).
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (stat !== '')
      found.set(Number(name), {
        parent: Number(fields[1]),
        ticks: fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0),
      });
  }
  let ticks = 0;
  for (const [pid, { ticks: own }] of found)
    for (let at: number | undefined = pid; at !== undefined; at = found.get(at)?.parent)
      if (at === root) {
        ticks += own;
        break;
      }
  return ticks / TICKS;
}
