import { timePasses } from './eventually.js';

const DAY_MS = 86_400_000;

/** For tests that assume that the date does not change. If less than `neededMs` of the day is left, waits for the next day. */
export async function awayFromMidnight(timeZone = 'UTC', neededMs = 60_000): Promise<void> {
  const [hours, minutes, seconds] = new Date()
    .toLocaleTimeString('en-GB', { timeZone })
    .split(':')
    .map(Number);
  const leftMs = DAY_MS - ((hours! * 60 + minutes!) * 60 + seconds!) * 1_000;
  if (leftMs <= neededMs) await timePasses(leftMs, 'the next day begins');
}
