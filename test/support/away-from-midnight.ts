import { timePasses } from './eventually.js';

const DAY_MS = 86_400_000;

/** What a test file may take; a wait of it fits into the time limit of a hook. */
const NEEDED_MS = 180_000;

/** For `beforeAll` of files that assume that the date does not change: near the end of the day, waits for the next one. */
export async function awayFromMidnight(timeZone = 'UTC'): Promise<void> {
  const [hours, minutes, seconds] = new Date()
    .toLocaleTimeString('en-GB', { timeZone })
    .split(':')
    .map(Number);
  const leftMs = DAY_MS - ((hours! * 60 + minutes!) * 60 + seconds!) * 1_000;
  if (leftMs <= NEEDED_MS) await timePasses(leftMs, 'the next day begins');
}
