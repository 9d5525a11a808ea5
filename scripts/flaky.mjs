// test/flaky.md: the tests that failed by chance and are still to be cured.
import { execFileSync } from 'node:child_process';
import { read, root } from './files.mjs';

const LIST = 'test/flaky.md';
const MOST_DAYS = 14;
const DAY_MS = 86_400_000;
const ROW = /^\| *`([^`|]+)` *\|.*\| *(\d{4}-\d\d-\d\d) *\|$/;

/**
 * What is wrong with the list, by the date of the newest commit and never by the clock: the same tree gives the same result.
 *
 * @returns a line for each problem
 */
export function flakyProblems(text = read(LIST), today = newestCommit()) {
  const rows = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('|'))
    .slice(2);
  return rows.flatMap((row) => {
    const [, file, added] = ROW.exec(row) ?? [];
    if (file === undefined) return [`${LIST}: not a file, a test, a message and a date: ${row}`];
    if (today === null) return [];
    const days = (Date.parse(today) - Date.parse(added)) / DAY_MS;
    // No date (2026-13-01) is not in time either. A day ahead: another time zone.
    return !(days >= -1 && days <= MOST_DAYS)
      ? [
          `${LIST}: ${file} is dated ${added}, more than ${MOST_DAYS} days from the newest commit: cure it and remove its line`,
        ]
      : [];
  });
}

/** @returns its date; null outside of git, where nobody adds to the list */
function newestCommit() {
  try {
    return execFileSync('git', ['log', '-1', '--format=%cs'], {
      cwd: root,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim();
  } catch {
    return null;
  }
}
