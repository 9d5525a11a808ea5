import { randomFillSync } from 'node:crypto';

/** Random bytes are drawn for so many ids at once: a draw from the system's CSPRNG for each takes 2 µs in a loop. */
const DRAWN_AT_ONCE = 512;
/** Random bytes of one id: 62 bits behind the variant, and 11 for where a millisecond's counter begins. */
const RANDOM_BYTES = 10;
const VARIANTS = ['8', '9', 'a', 'b'] as const;
const MAX_PER_MS = 0xfff;
/** A clock that is set back by more is followed: the time of an id decides which day its call is charged to. */
const MAX_AHEAD_MS = 1_000;

const pool = Buffer.allocUnsafeSlow(DRAWN_AT_ONCE * RANDOM_BYTES);
let drawn = pool.length;
let now = 0;
let counter = 0;
/** The 48 bits of time with their two hyphens: the same for all ids of a millisecond. */
let time = '';

/**
 * A UUIDv7 (RFC 9562 5.7) that is larger than all made by this process before, unless its clock was set back by more than a
 * second: 48 bits of Unix milliseconds, a counter of 12 bits that begins at random in the lower half (6.2, method 1), 62
 * random bits.
 */
export function uuidV7(): string {
  if (drawn === pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  const at = drawn;
  drawn += RANDOM_BYTES;
  const read = Date.now();
  const isFollowed = read > now || read < now - MAX_AHEAD_MS;
  if (isFollowed || counter === MAX_PER_MS) {
    // A full counter goes on in the millisecond after the last.
    now = isFollowed ? read : now + 1;
    counter = ((pool[at]! & 7) << 8) | pool[at + 1]!;
    const hex = now.toString(16).padStart(12, '0');
    time = `${hex.slice(0, 8)}-${hex.slice(8)}-`;
  } else {
    counter++;
  }
  const random = pool.toString('hex', at + 2, at + RANDOM_BYTES);
  return `${time}${(0x7000 | counter).toString(16)}-${VARIANTS[pool[at]! >> 6]}${random.slice(1, 4)}-${random.slice(4)}`;
}
