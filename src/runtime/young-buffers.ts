import { setFlagsFromString } from 'node:v8';

/**
 * Bodies are read into buffers of 64 KiB outside of V8's heap. V8 up to 12 collects the young ones after 32 MiB of them, in a
 * few milliseconds. V8 13 (Node 24) waits for longer than the 64 MiB after which it marks its whole heap instead: with
 * prompts of 400 KiB at every 150th call, and some 50 ms of processor time each. This brings the 32 MiB back. The size of
 * the young generation stays what the start's flags make it.
 */
const FLAG = '--scavenger-max-new-space-capacity-mb=8';
const FIRST_V8 = 13;

/** Keeps collections of garbage cheap while long bodies pass. For the whole process; to be called at the start. */
export function collectYoungBuffersEarly(): void {
  if (Number.parseInt(process.versions.v8, 10) >= FIRST_V8) setFlagsFromString(FLAG);
}
