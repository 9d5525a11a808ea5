import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { eventually } from '../support/eventually.js';
import type { Memory } from './idle-process.js';

/** As the tests are compiled. */
const PROCESS = resolve(__dirname, '../../.test-build/test/runtime/idle-process.js');

it('gives the memory of the young generation back while nothing happens, and only then', async () => {
  const child = fork(PROCESS);
  try {
    const ended = once(child, 'exit').then((how) => {
      throw new Error(`ended before it said anything: ${how.join(' ')}`);
    });
    const [busy] = (await Promise.race([once(child, 'message'), ended])) as [Memory];
    expect(busy).toEqual({ forced: 0, youngMib: expect.any(Number) as number });
    expect(busy.youngMib).toBeGreaterThan(12);
    let idle = busy;
    child.on('message', (memory: Memory) => (idle = memory));
    await eventually(() => {
      expect(child.connected).toBe(true);
      return idle.forced > 0 && idle.youngMib < 8;
    });
  } finally {
    child.kill();
  }
});
