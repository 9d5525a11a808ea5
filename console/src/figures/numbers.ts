/** Numbers as text. Counts are exact; `compact` shortens those from a million on, where the exact one is shown on hover. */

export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** "1 call", "2,030 calls" */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? '' : 's'}`;
}

export function compact(value: number, minimumFractionDigits = 2): string {
  if (Math.abs(value) < 1_000_000) return count(value);
  return value.toLocaleString('en-US', {
    notation: 'compact',
    minimumFractionDigits,
    maximumFractionDigits: 2,
  });
}

/** For axes: "1.5M", "2M". */
export function compactTick(value: number): string {
  return compact(value, 0);
}

/** A part of a whole as a percentage: never "0 %" for something, nor "100 %" for less than all. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return '–';
  const value = (100 * part) / whole;
  if (part === 0) return '0%';
  if (part === whole) return '100%';
  if (value < 0.01) return '<0.01%';
  if (value > 99.99 && value < 100) return '>99.99%';
  return `${value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 2 : 1 })}%`;
}

/** Milliseconds as "85 ms", "1.24 s", "2 min 5 s", "3 h 20 min", "89 d 19 h". */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const hours = Math.floor(seconds / 3_600);
  return hours < 48
    ? `${hours} h ${Math.floor((seconds % 3_600) / 60)} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (value < 1_024) return `${value} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let scaled = value / 1_024;
  let unit = 0;
  while (scaled >= 1_024 && unit < units.length - 1) {
    scaled /= 1_024;
    unit += 1;
  }
  return `${scaled.toFixed(scaled < 10 ? 1 : 0)} ${units[unit]}`;
}

/** The change from one number to another: "+12%", "−3%", "new" if there was nothing before. */
export function change(now: number, before: number): { text: string; direction: -1 | 0 | 1 } {
  if (before === 0) return { text: now === 0 ? 'no change' : 'new', direction: now === 0 ? 0 : 1 };
  const ratio = (now - before) / before;
  const value = 100 * Math.abs(ratio);
  if (value < 0.05) return { text: 'no change', direction: 0 };
  if (value >= 1_000) return { text: '>999%', direction: 1 };
  const text = value.toFixed(value < 10 ? 1 : 0);
  return ratio > 0 ? { text: `+${text}%`, direction: 1 } : { text: `−${text}%`, direction: -1 };
}

/** The change of a share, such as an error rate, in percentage points: "+1.2 points". */
export function changeInPoints(now: number, before: number): { text: string; direction: -1 | 0 | 1 } {
  const points = 100 * (now - before);
  const value = Math.abs(points);
  if (value < 0.005) return { text: 'no change', direction: 0 };
  const text = value.toLocaleString('en-US', { maximumFractionDigits: value < 1 ? 2 : 1 });
  return { text: `${points > 0 ? '+' : '−'}${text} points`, direction: points > 0 ? 1 : -1 };
}
